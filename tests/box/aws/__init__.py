"""A stand-in for the AWS command: sessions of ssh through SSM, to the machines of a box."""
