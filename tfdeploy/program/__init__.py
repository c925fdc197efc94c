"""What the component does in a Pulumi program: it reads arguments and configuration, plans, announces and registers resources."""
