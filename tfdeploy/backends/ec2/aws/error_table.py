"""The errors of AWS: botocore's exceptions, and the codes of the services that are called. A table only; `aws_errors` reads it.

Codes and their meaning: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html,
https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html, https://docs.aws.amazon.com/IAM/latest/APIReference/CommonErrors.html,
and the error shapes of botocore's models of EFS, IAM, S3, SSM, STS, IAM Identity Center (SSO, SSO OIDC) and Service Quotas.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What an error of AWS is about. It decides the class of the exception, and whether the call is repeated."""

    LOGIN = "login"
    CLOCK = "clock"
    PERMISSION = "permission"
    REGION = "region"
    CONFIGURATION = "configuration"
    QUOTA = "quota"
    CAPACITY = "capacity"
    THROTTLING = "throttling"
    GONE = "gone"
    CONFLICT = "conflict"
    """Something is in use, or is changed by another call at the same time."""
    FAILURE = "failure"
    """AWS responded that it failed itself, or its response did not arrive completely."""
    REFUSED = "refused"
    """A value that AWS does not accept, or an unknown code."""
    UNREACHABLE = "unreachable"
    """Nothing responded."""


@dataclass(frozen=True)
class ErrorRow:
    """Errors that have one sentence and one remedy.

    Fields of the texts: `of` (" of profile ml"), `at` (" in us-west-2"), `region`, `detail` (AWS's message with its code), `login` (how
    to log in), `skew` (of the clock), `action` and `ask` (for a permission), `quota`, `raise_quota`, `zones` (those that AWS names),
    `nearest_region`.
    """

    kind: Kind
    wrong: str
    remedy: str
    exceptions: str = ""
    """Names of classes, separated by spaces; a class that is in no row has the row of its nearest base class."""
    codes: str = ""
    pattern: str = ""
    """A regular expression for codes that are in no row; the first row that matches counts."""
    statuses: tuple[int, ...] = ()
    """HTTP statuses of codes that match no pattern. S3 has nothing else in the response to a HEAD."""
    when: str = ""
    """A regular expression that the message must match. Such a row counts before the one without."""
    where: str = "AWS"


_AGAIN = "Run the command again later."
_SET_CLOCK = "Set the clock: `timedatectl set-ntp true`, or that of the virtual machine or container host."

CLOCK = ErrorRow(
    Kind.CLOCK,
    "the clock of this computer is wrong{skew}, so AWS does not accept the signature of the call ({detail})",
    _SET_CLOCK,
    codes="RequestInTheFuture RequestTimeTooSkewed",
)
DISABLED_REGION = ErrorRow(
    Kind.REGION,
    "the credentials{of} are not accepted{at}: the account has not enabled this region, or they are wrong ({detail})",
    "Run `aws account enable-region --region-name {region}`, choose another region, or log in again. {login}",
)
NO_FIPS = ErrorRow(
    Kind.REGION,
    "there is no FIPS endpoint in {region} ({detail})",
    "Remove aws:useFipsEndpoint and AWS_USE_FIPS_ENDPOINT, or choose a region in the USA or Canada.",
)
FOREIGN = ErrorRow(
    Kind.CONFIGURATION,
    "something other than AWS responded{at} ({detail})",
    "Check whether a proxy, or the login page of a network, responds instead, and AWS_ENDPOINT_URL.",
    exceptions="ResponseParserError",
)
NO_CREDENTIALS = ErrorRow(
    Kind.LOGIN, "no credentials were found ({detail})", "{login}", exceptions="NoCredentialsError"
)
NO_REGION = ErrorRow(
    Kind.REGION,
    "is not set",
    "Run `pulumi config set aws:region us-west-2`, or set AWS_REGION.",
    exceptions="NoRegionError",
    where="region",
)
UNKNOWN_REGION = ErrorRow(Kind.REGION, "{region} is not a region of AWS ({detail})", "{nearest_region}")

_CONFIGURATION = (
    ErrorRow(
        Kind.CONFIGURATION,
        "the address of an AWS service is not valid ({detail})",
        "Correct AWS_ENDPOINT_URL, endpoint_url of the profile, or aws:endpoints.",
        exceptions="InvalidHostLabelError InvalidEndpointConfigurationError EndpointProviderError",
    ),
    ErrorRow(
        Kind.CONFIGURATION,
        "the address of an AWS service is not valid ({detail})",
        "Correct AWS_ENDPOINT_URL, endpoint_url of the profile, or aws:endpoints.",
        exceptions="ValueError",
        when="Invalid endpoint",
    ),
    ErrorRow(
        Kind.CONFIGURATION,
        "{detail}",
        "Correct aws:profile, or AWS_PROFILE.",
        exceptions="ProfileNotFound",
    ),
    ErrorRow(
        Kind.CONFIGURATION,
        "the configuration file cannot be read ({detail})",
        "Correct it (~/.aws/config, ~/.aws/credentials, or the file that AWS_CONFIG_FILE or aws:sharedConfigFiles names).",
        exceptions="ConfigNotFound ConfigParseError",
    ),
    ErrorRow(
        Kind.CONFIGURATION,
        "the credentials{of} are not complete ({detail})",
        "Set the access key and the secret key, both in the same place: the environment, or the profile.",
        exceptions="PartialCredentialsError",
    ),
    ErrorRow(
        Kind.CONFIGURATION,
        "no secure connection to AWS could be made{at} ({detail})",
        "If a proxy replaces AWS's certificates, set AWS_CA_BUNDLE, or aws:customCaBundle, to the file of its certificate authority.",
        exceptions="SSLError",
    ),
    ErrorRow(
        Kind.CLOCK,
        "its certificate is not valid yet, by the clock of this computer ({detail})",
        _SET_CLOCK,
        exceptions="SSLError",
        when="not yet valid",
    ),
    ErrorRow(
        Kind.CONFIGURATION,
        "the proxy refuses the connection to AWS{at} ({detail})",
        "Correct HTTPS_PROXY, or aws:httpsProxy, with its user and password.",
        exceptions="ProxyConnectionError",
        when="Tunnel connection failed|407",
    ),
    FOREIGN,
    ErrorRow(
        Kind.CONFIGURATION,
        "the settings for AWS cannot be used ({detail})",
        "Correct the profile (~/.aws/config), the variables AWS_… of the environment, or aws:… of the stack.",
        exceptions=(
            "EndpointDiscoveryException HTTPClientError InvalidChecksumConfigError InvalidConfigError InvalidDefaultsMode "
            "InvalidDNSNameError InvalidEndpointDiscoveryConfigurationError InvalidIMDSEndpointError "
            "InvalidIMDSEndpointModeError InvalidProxiesConfigError InvalidRetryConfigurationError "
            "InvalidS3AddressingStyleError InvalidS3UsEast1RegionalEndpointConfigError "
            "InvalidSTSRegionalEndpointsConfigError UnknownCredentialError UnknownSignatureVersionError "
            "UnknownTokenProviderError UnsupportedS3AccesspointConfigurationError UnsupportedS3ConfigurationError "
            "UnsupportedS3ControlConfigurationError UnsupportedSignatureVersionError"
        ),
    ),
    ErrorRow(
        Kind.CONFIGURATION,
        "the installation of boto3 cannot be used ({detail})",
        "Install what it names, or install boto3 and botocore again, in the environment of the program.",
        exceptions=(
            "ApiVersionNotFoundError DataNotFoundError MD5UnavailableError MissingDependencyException UnknownServiceStyle "
            "UnsupportedServiceProtocolsError"
        ),
    ),
    ErrorRow(
        Kind.CONFIGURATION,
        "the login{of} cannot be read ({detail})",
        "Correct the profile, its credential_process or its token file. {login}",
        exceptions="OSError ValueError LookupError TypeError RuntimeError",
    ),
)

_LOGIN = (
    ErrorRow(
        Kind.LOGIN,
        "the login{of} has expired ({detail})",
        "{login}",
        exceptions="LoginRefreshRequired TokenRetrievalError UnauthorizedSSOTokenError",
        codes=(
            "ExpiredToken ExpiredTokenException ExpiredTradeInTokenException InvalidGrantException TokenRefreshRequired "
            "UnauthorizedException"
        ),
    ),
    ErrorRow(
        Kind.LOGIN,
        "the login{of} has expired ({detail})",
        "{login}",
        exceptions="RuntimeError",
        when="Credentials were refreshed",
    ),
    ErrorRow(
        Kind.LOGIN,
        "the login{of} has expired, or the clock of this computer is wrong ({detail})",
        "{login}",
        codes="RequestExpired",
    ),
    ErrorRow(
        Kind.LOGIN,
        "the login{of} has expired or is missing ({detail})",
        "{login}",
        exceptions="LoginError NoAuthTokenError SSOError",
    ),
    NO_CREDENTIALS,
    ErrorRow(
        Kind.LOGIN,
        "the call had no credentials ({detail})",
        "{login}",
        codes="MissingAuthenticationToken MissingAuthenticationTokenException MissingSecurityHeader",
    ),
    ErrorRow(
        Kind.LOGIN,
        "S3 does not accept the call, as where the login{of} has expired, or the region is not the bucket's ({detail})",
        "{login}",
        codes="400",
    ),
    ErrorRow(
        Kind.LOGIN,
        "the credentials{of} could not be obtained ({detail})",
        "{login}",
        exceptions="CredentialRetrievalError MetadataRetrievalError",
    ),
    ErrorRow(
        Kind.LOGIN,
        "the login{of} needs a code of an MFA device, which cannot be entered here ({detail})",
        "Run `aws sts get-session-token`, or `aws configure export-credentials --format env`, in your shell, and set its credentials.",
        exceptions="RefreshWithMFAUnsupportedError EOFError",
    ),
    ErrorRow(
        Kind.LOGIN,
        "the code of the MFA device was not accepted ({detail})",
        "{login}",
        codes="AccessDenied",
        when="MultiFactorAuthentication failed",
    ),
    ErrorRow(
        Kind.LOGIN,
        "the keys{of} have a character that no key has, such as a line end",
        "{login}",
        exceptions="HTTPClientError",
        when="Invalid header value|[Ii]llegal header",
    ),
    ErrorRow(
        Kind.LOGIN,
        "the credentials{of} are not accepted{at} ({detail})",
        "{login}",
        codes=(
            "AuthFailure CredentialsNotSupported IDPRejectedClaim IncompleteSignature IncompleteSignatureException "
            "InvalidAccessKeyId InvalidAuthenticationCode InvalidClientException InvalidClientTokenId "
            "InvalidIdentityToken InvalidSecurity InvalidSignatureException InvalidToken NotSignedUp "
            "SignatureDoesNotMatch UnauthorizedClientException UnrecognizedClientException"
        ),
        statuses=(401,),
    ),
    ErrorRow(
        CLOCK.kind,
        CLOCK.wrong,
        CLOCK.remedy,
        codes="AuthFailure InvalidSignatureException RequestExpired SignatureDoesNotMatch",
        when="Signature expired|not yet current|in the future",
    ),
    CLOCK,
)

_PERMISSION = (
    ErrorRow(
        Kind.PERMISSION,
        "the role cannot be assumed ({detail})",
        "Allow it in the trust policy of the role, and in the permissions of the credentials that assume it.",
        codes="AccessDenied AccessDeniedException",
        when="perform: sts:AssumeRole",
    ),
    ErrorRow(
        Kind.PERMISSION,
        "the account cannot be used{at} ({detail})",
        "Check the account's status, payment method and agreements in the AWS console, or ask AWS Support.",
        codes="AccountProblem AllAccessDisabled Blocked InvalidPayer PendingVerification SubscriptionRequiredException",
    ),
    ErrorRow(
        Kind.PERMISSION,
        "the image is a product of AWS Marketplace that the account has not subscribed to ({detail})",
        "Accept its terms on the page that AWS names, or choose another ec2.ami.",
        codes="OptInRequired",
        when="[Mm]arketplace",
    ),
    ErrorRow(
        Kind.PERMISSION,
        "the credentials{of} do not have the permission {action}{at} ({detail})",
        "{ask}",
        exceptions="LoginInsufficientPermissions",
        codes=(
            "AccessDenied AccessDeniedException DependencyAccessDeniedException Forbidden ForbiddenException "
            "NotAuthorized OutboundWebIdentityFederationDisabledException UnauthorizedAccess UnauthorizedOperation"
        ),
        pattern=r"AccessDenied|^Unauthorized|NotAuthorized|^KMS\.",
        statuses=(403,),
    ),
)

_REGION = (
    NO_REGION,
    ErrorRow(
        Kind.REGION,
        "the region {region!r} cannot be used ({detail})",
        "Correct ec2.region, aws:region or AWS_REGION, and aws:useFipsEndpoint and aws:useDualstackEndpoint if they are set.",
        exceptions="BaseEndpointResolverError InvalidRegionError ServiceNotInRegionError UnknownRegionError",
        codes="InvalidRegion InvalidRequestRegionException UnsupportedRegion",
    ),
    ErrorRow(
        Kind.REGION,
        "the account may not use this service in {region} ({detail})",
        "Enable it (`aws account enable-region --region-name {region}`), or choose another one. A new account may need some hours.",
        codes="OptInRequired RegionDisabledException",
        pattern="RegionDisabled|OptIn",
    ),
    ErrorRow(
        Kind.REGION,
        "the bucket is in another region than {region} ({detail})",
        "Correct ec2.region, aws:region or AWS_REGION, or the address of S3 (AWS_ENDPOINT_URL, aws:endpoints).",
        codes=(
            "AuthorizationHeaderMalformed IllegalLocationConstraintException InvalidLocationConstraint PermanentRedirect "
            "Redirect TemporaryRedirect"
        ),
        pattern="LocationConstraint",
        statuses=(301, 307, 308),
    ),
)

_LIMITS = (
    ErrorRow(
        Kind.THROTTLING,
        "AWS refuses the call because the account makes too many calls{at} ({detail})",
        _AGAIN,
        exceptions="CapacityNotAvailableError",
        codes=(
            "BandwidthLimitExceeded EC2ThrottledException PriorRequestNotComplete ProvisionedThroughputExceededException "
            "RequestLimitExceeded RequestThrottled RequestThrottledException SlowDown SlowDownException "
            "ThrottledException Throttling ThrottlingException TooManyRequests TooManyRequestsError "
            "TooManyRequestsException TooManyUpdates TransactionInProgressException"
        ),
        pattern="Throttl|TooManyRequests|SlowDown|RequestLimitExceeded|TooManyUpdates",
        statuses=(429, 509),
    ),
    ErrorRow(
        Kind.CAPACITY,
        "the subnet has no free address ({detail})",
        "Choose another ec2.subnet_id, or remove what uses its addresses.",
        codes="InsufficientFreeAddressesInSubnet NoFreeAddressesInSubnet",
    ),
    ErrorRow(
        Kind.CAPACITY,
        "the instance type is not available in this zone ({detail})",
        "Choose {zones}another ec2.instance_type.",
        codes="Unsupported UnsupportedAvailabilityZone",
        when="[Zz]one",
    ),
    ErrorRow(
        Kind.CAPACITY,
        "the price of a spot instance is now above the most that the request pays ({detail})",
        "Set spot=False, or choose {zones}another ec2.instance_type.",
        codes="SpotMaxPriceTooLow",
    ),
    ErrorRow(
        Kind.CAPACITY,
        "there is no capacity{at} now ({detail})",
        "Choose {zones}another ec2.instance_type, or run `pulumi up` again later.",
        codes=(
            "InsufficientAddressCapacity InsufficientCapacity InsufficientCapacityOnHost InsufficientHostCapacity "
            "InsufficientInstanceCapacity InsufficientReservedInstanceCapacity InsufficientReservedInstancesCapacity "
            "InsufficientThroughputCapacity InsufficientVolumeCapacity ReservationCapacityExceeded UnfulfillableCapacity"
        ),
        pattern="^Insufficient.*Capacity|CapacityExceeded$",
    ),
    ErrorRow(
        Kind.QUOTA,
        "{quota} of the account is reached{at} ({detail})",
        "{raise_quota}",
        codes="LimitExceeded QuotaExceededException ServiceQuotaExceededException TooManyBuckets",
        pattern="LimitExceeded(Exception|Error)?$|CountExceeded(Exception|Error)?$|QuotaExceeded(Exception|Error)?$|^TooManyBuckets|PermissionLimit$",
    ),
)

_OTHERS = (
    ErrorRow(
        Kind.CONFLICT,
        "something is in use, or is changed by another call at this moment{at} ({detail})",
        _AGAIN,
        codes=(
            "BucketNotEmpty ConcurrentModification ConcurrentTagAccess ConflictException DeleteConflict "
            "DependencyViolation EntityTemporarilyUnmodifiable IncorrectFileSystemLifeCycleState OperationAborted"
        ),
        pattern=r"InUse(Exception|Error)?$|^Incorrect.*State$|^Concurrent|Conflict(Exception|Error)?$",
    ),
    ErrorRow(
        Kind.GONE,
        "what was asked for does not exist{at} ({detail})",
        "Correct its id or name. If it was deleted, run `pulumi up --refresh`.",
        codes="NoSuchBucket NoSuchEntity NoSuchKey ParameterNotFound",
        pattern=r"NotFound(Exception|Error)?$|^NoSuch|DoesNotExist(Exception|Error)?$|\.Unknown$|^Invalid.*\.Unavailable$",
        statuses=(404, 410),
    ),
    ErrorRow(
        Kind.FAILURE,
        "AWS failed to carry out the call{at} ({detail})",
        "Run the command again later, and see https://health.aws.amazon.com.",
        exceptions=(
            "AwsChunkedWrapperError ChecksumError FlexibleChecksumError IncompleteReadError ResponseStreamingError "
            "WaiterError"
        ),
        codes=(
            "DependencyTimeout IDPCommunicationError InternalError InternalFailure InternalServerError "
            "InternalServerException RequestTimeout RequestTimeoutException ServiceException ServiceFailure "
            "ServiceUnavailable ServiceUnavailableException Unavailable"
        ),
        pattern="^Internal|Unavailable(Exception|Error)?$|ServiceException$|Timeout(Exception|Error)?$",
        statuses=(500, 502, 503, 504),
    ),
    ErrorRow(
        Kind.UNREACHABLE,
        "the proxy to AWS does not respond ({detail})",
        "Correct HTTPS_PROXY, or aws:httpsProxy, or start the proxy",
        exceptions="ProxyConnectionError",
    ),
    ErrorRow(
        Kind.UNREACHABLE,
        "AWS does not respond{at} ({detail})",
        "Check the network, the proxy (HTTPS_PROXY) and AWS_ENDPOINT_URL",
        exceptions="ConnectionError ConnectionClosedError ReadTimeoutError",
    ),
    ErrorRow(
        Kind.REFUSED,
        "the call is not valid ({detail})",
        "Correct the value that it names. If that is not one of yours, please report it.",
        exceptions=(
            "Boto3Error InvalidExpressionError MissingParametersError OperationNotPageableError PaginationError "
            "ParamValidationError StubResponseError UnknownClientMethodError UnseekableStreamError "
            "UnsupportedOutpostResourceError UnsupportedS3ArnError UnsupportedS3ControlArnError ValidationError "
            "WaiterConfigError"
        ),
    ),
)

OTHER = ErrorRow(
    Kind.REFUSED,
    "the call is refused{at} ({detail})",
    "Correct what it names.",
    exceptions="BotoCoreError ClientError",
)
"""What no other row has."""

TABLE = (*_LOGIN, *_PERMISSION, *_REGION, *_CONFIGURATION, *_LIMITS, *_OTHERS, OTHER)


QUOTAS: Mapping[str, tuple[str, str]] = {
    "AddressLimitExceeded": ("ec2", '"EC2-VPC Elastic IPs"'),
    "FileSystemLimitExceeded": ("elasticfilesystem", '"File systems per account"'),
    "InstanceLimitExceeded": ("ec2", '"Running On-Demand … instances"'),
    "InternetGatewayLimitExceeded": ("vpc", '"Internet gateways per Region"'),
    "LimitExceeded": ("iam", "for roles, instance profiles or policies (IAM)"),
    "MaxIOPSLimitExceeded": ("ebs", '"IOPS for … volumes"'),
    "MaxSpotInstanceCountExceeded": ("ec2", '"All … Spot Instance Requests"'),
    "NetworkInterfaceLimitExceeded": ("vpc", '"Network interfaces per Region"'),
    "ParameterLimitExceeded": ("ssm", "for parameters"),
    "RulesPerSecurityGroupLimitExceeded": ("vpc", '"Inbound or outbound rules per security group"'),
    "SecurityGroupLimitExceeded": ("vpc", '"VPC security groups per Region"'),
    "SecurityGroupsPerInstanceLimitExceeded": ("vpc", '"Security groups per network interface"'),
    "SecurityGroupsPerInterfaceLimitExceeded": ("vpc", '"Security groups per network interface"'),
    "SubnetLimitExceeded": ("vpc", '"Subnets per VPC"'),
    "TooManyBuckets": ("s3", '"General purpose buckets"'),
    "VcpuLimitExceeded": ("ec2", '"Running On-Demand … instances" (vCPUs)'),
    "VolumeLimitExceeded": ("ebs", '"Storage for … volumes"'),
    "VpcLimitExceeded": ("vpc", '"VPCs per Region"'),
}
"""Code to the service and the name of its quota, as Service Quotas has them. https://docs.aws.amazon.com/general/latest/gr/aws-service-information.html"""

ACTIONS: Mapping[str, str] = {
    "DeleteObjects": "s3:DeleteObject",
    "GetPublicAccessBlock": "s3:GetBucketPublicAccessBlock",
    "HeadBucket": "s3:ListBucket",
    "HeadObject": "s3:GetObject",
    "ListObjectsV2": "s3:ListBucket",
    "PutPublicAccessBlock": "s3:PutBucketPublicAccessBlock",
    "AssumeRole": "sts:AssumeRole",
    "GetRoleCredentials": "to use the role of the profile",
}
"""Operation to the action of IAM that it needs, where `actions` has no action of this name.
https://docs.aws.amazon.com/AmazonS3/latest/userguide/using-with-s3-policy-actions.html"""

DEFAULT_REGIONS = (
    "ap-northeast-1 ap-northeast-2 ap-northeast-3 ap-south-1 ap-southeast-1 ap-southeast-2 ca-central-1 eu-central-1 "
    "eu-north-1 eu-west-1 eu-west-2 eu-west-3 sa-east-1 us-east-1 us-east-2 us-west-1 us-west-2"
)
"""The regions that are enabled in each account; all later ones must be enabled.
https://docs.aws.amazon.com/accounts/latest/reference/manage-acct-regions.html"""
