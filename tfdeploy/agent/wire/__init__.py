"""What travels between launchers, the controller and the user's computer."""
