"""What controller, launchers and the user's computer know of a run: data, and rules that only compute."""
