"""Programs of the five systems that people come from, run as their users run them."""
