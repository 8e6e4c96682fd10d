-- One message on a channel. A function and not the statement NOTIFY, which takes no parameters.
select pg_notify($1, $2);
