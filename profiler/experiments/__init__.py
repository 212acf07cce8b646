"""Experiments: runs that test a finding."""
