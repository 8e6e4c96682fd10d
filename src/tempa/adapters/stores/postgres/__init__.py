"""The store for several processes: PostgreSQL, behind a transaction pooler if need be."""
