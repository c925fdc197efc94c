"""Plugins of pytest: how tests are spread over processes, what each costs, and what a whole run must have shown."""
