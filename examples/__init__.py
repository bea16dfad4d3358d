"""Example applications; run them from the project root."""
