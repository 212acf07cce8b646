"""Pieces of the window that know nothing about runs."""
