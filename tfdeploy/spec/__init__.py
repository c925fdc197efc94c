"""What the user asked for, validated. Pure."""
