"""The desktop window. Imports profiler; never torch, sqlite3 or pynvml."""
