"""Names of files that are beside code and are not part of it, and of files with keys or passwords. Pure."""

import re

EXCLUDED = (
    # tfdeploy and Pulumi. The last two are written while the code stays the same: `pulumi up > up.log` must not start another run.
    *("Pulumi.yaml", "Pulumi.*.yaml", ".pulumi/", "*.log", "nohup.out"),
    # version control
    *(".git", ".hg/", ".svn/", ".bzr/", ".jj/", "CVS/", "_darcs/", ".fslckout", "_FOSSIL_"),
    # Python
    *(".venv/", "venv/", "__pycache__/", "*.py[co]", ".mypy_cache/", ".pytest_cache/", ".ruff_cache/"),
    *(".pytype/", ".pyre/", ".dmypy.json", ".tox/", ".nox/", ".eggs/", ".direnv/", ".hypothesis/"),
    *(".benchmarks/", ".testmondata*", "node_modules/"),
    # coverage
    *(".coverage", ".coverage.*", "htmlcov/", "coverage.xml", ".nyc_output/", "lcov.info"),
    # editors
    *("*~", "~$*", ".#*", r"\#*\#", "*.sw[op]", ".*.sw[a-p]", "*.un~", ".netrwhist", ".*.kate-swp"),
    *(".~lock.*#", ".~*.ipynb", "*___jb_tmp___", "*___jb_old___", ".goutputstream-*", "*.orig", "*.rej"),
    *(".idea/", ".vscode/", ".vs/", ".fleet/", ".zed/", ".history/", ".ipynb_checkpoints/"),
    *(".virtual_documents/", ".spyderproject", ".spyproject/", ".ropeproject/", ".project"),
    *(".pydevproject", ".settings/", "*.iml", "*.code-workspace", "*.sublime-project"),
    *("*.sublime-workspace",),
    # desktops
    *(".DS_Store", "._*", "__MACOSX/", ".AppleDouble/", ".AppleDB/", ".AppleDesktop/", ".LSOverride"),
    *(".Spotlight-V100/", ".DocumentRevisions-V100/", ".TemporaryItems/", ".Trashes/", ".fseventsd/"),
    *(".VolumeIcon.icns", ".localized", "[Tt]humbs.db", "[Tt]humbs.db:encryptable", "ehthumbs*.db"),
    *("[Dd]esktop.ini", "$RECYCLE.BIN/", "System Volume Information/", "*:Zone.Identifier", ".directory"),
    *(".Trash-*/", ".thumbnails/", "lost+found/"),
    # file systems
    *(".nfs*", ".fuse_hidden*", ".cifs*", ".smbdelete*", ".__afs*", ".panfs*", ".dropbox", ".dropbox.attr"),
    *(".dropbox.cache/", ".stfolder", ".stversions/", "[.~]syncthing[.~]*", ".sync_*.db*", "._sync_*.db*"),
    *(".owncloudsync.log*", ".nextcloudsync.log*", "*.icloud"),
    # experiment trackers
    *("mlruns/", "mlartifacts/", "mlflow.db", "wandb/", "lightning_logs/", "tb_logs/"),
    *("events.out.tfevents.*", ".neptune/", ".aim/", ".guild/", ".cometml-runs/", ".dvc/cache/"),
    *(".dvc/tmp/", "dvclive/", "catboost_info/", "ray_results/", "swanlog/"),
)
"""Patterns of files that are not shipped, as in .gitignore: they change while the code stays the same. The user's .gitignore and
.tfdeployignore add to them, and include some of them with `!`."""

_SECRET_FORMS = ("yaml", "yml", "json", "toml", "ini", "env", "cfg", "conf", "properties")

CREDENTIALS = (
    *(".env*", "!.env.example", "!.env.sample", "!.env.template"),
    *(f"secrets.{form}" for form in _SECRET_FORMS),
    *(f"credentials.{form}" for form in _SECRET_FORMS),
    *(".secrets*", "credentials", "*.pem", "*.key", "*.p8", "*.p12", "*.pfx", "*.ppk", "*.jks"),
    *("*.keystore", "*.kdb", "*.kdbx", "*.ovpn", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".ssh/"),
    *(".aws/", ".azure/", ".gcloud/", ".gnupg/", ".kube/", ".oci/", ".kaggle/", "kaggle.json"),
    *("kubeconfig", ".docker/config.json", ".dockercfg", ".dockerconfigjson", ".netrc", "_netrc"),
    *(".pgpass", ".my.cnf", ".pypirc", ".npmrc", ".boto", ".s3cfg", ".databrickscfg", ".git-credentials"),
    *(".htpasswd", ".vault-token", ".vault_pass*", "*accessKeys.csv", "rootkey.csv", "terraform.tfstate*"),
    *("application_default_credentials.json", "client_secret*.json", "*service-account*.json"),
    *("*service_account*.json", "*firebase-adminsdk*.json"),
)
"""Patterns of files that often have keys or passwords in them. They are not shipped either, and each is listed in the preview, because
a program may need one; a line with `!` in .tfdeployignore includes it."""

SEARCHED_BYTES = 64 * 1024
"""So much of the beginning of a file is searched for keys."""

_SECRET_NAME = re.compile(
    r"(?:.*[._-])?(?:auth|(?:access|api|hf|github|gitlab|wandb|oauth)?[_-]?(?:token|key)|secrets?|credentials?|passwords?|passwd|passphrase)"
    r"(?:[_-][\w-]+)?(?:\.(?:txt|json|ya?ml|toml|ini|cfg|conf|csv|properties|xml|bin|enc|gpg|asc))?",
    re.IGNORECASE,
)
_EXAMPLE = re.compile(r"example|sample|template|dummy|\.dist\b", re.IGNORECASE)
_KEY = re.compile(
    rb"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----\s"
    rb"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"
    rb"|\bgh[pousr]_[A-Za-z0-9]{36}\b|\bgithub_pat_\w{22,}\b|\bglpat-[\w-]{20,}"
    rb"|\bhf_[A-Za-z0-9]{34}\b|\bsk-[A-Za-z0-9_-]{32,}|\bxox[abpr]-[\w-]{10,}|\bAIza[\w-]{35}\b"
    rb'|"type"\s*:\s*"service_account"|(?i:aws_secret_access_key)\s*[=:]\s*["\']?[\w/+]{40}\b'
)


def looks_secret(name: str, content: bytes) -> bool:
    """Whether a file that is shipped looks as if it had a key or a password in it: by its name, or by what begins it."""
    last = name.rpartition("/")[2]
    if _EXAMPLE.search(last):
        return False
    return bool(_SECRET_NAME.fullmatch(last) or _KEY.search(content[:SEARCHED_BYTES]))
