"""A stand-in for Pulumi's AWS provider plugin: the resource types tfdeploy uses, on boto3, for tests against moto."""
