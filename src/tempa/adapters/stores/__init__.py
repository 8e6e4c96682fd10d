"""The truth: jobs, events, deliveries and keys. SQLite for one process, PostgreSQL for many."""
