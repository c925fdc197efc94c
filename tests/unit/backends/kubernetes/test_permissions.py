"""What a user may not do, and the Role that grants it."""

from pathlib import Path

import yaml

import tfdeploy.backends.kubernetes
from tests.pages import ROOT
from tests.unit.backends.kubernetes.fake_api import EVERYTHING, FakeApi
from tfdeploy.backends.kubernetes.permissions import RULES, Rule, missing, role, verbs_of

AS_GRANTED = [{"apiGroups": [rule.group], "resources": [rule.resource], "verbs": [*rule.verbs]} for rule in RULES]


def test_one_call_is_enough_where_the_server_lists_all_permissions() -> None:
    for rules in ([EVERYTHING], AS_GRANTED, role("training", RULES)["rules"]):
        api = FakeApi({}, rules)
        assert missing(api) == ()
        assert api.posts == 1


def test_what_is_not_listed_is_asked_for() -> None:
    others = AS_GRANTED[1:]
    api = FakeApi({}, others, {"get namespaces"})
    assert missing(api) == ()
    assert api.posts == 2
    assert missing(FakeApi({}, others)) == (Rule("", "namespaces", ("get",)),)


def test_verbs_of_one_resource_are_missing_together() -> None:
    without = [rule for rule in AS_GRANTED if rule["resources"] != ["pods/exec"]]
    (rule,) = missing(FakeApi({}, without, {"get pods/exec"}))
    assert rule == Rule("", "pods/exec", ("create",))
    assert verbs_of([rule, RULES[0]]) == "create pods/exec, get namespaces"


def test_a_permission_for_single_names_is_not_enough() -> None:
    named = [{**item, "resourceNames": ["mine"]} if item["resources"] == ["secrets"] else item for item in AS_GRANTED]
    assert [rule.resource for rule in missing(FakeApi({}, named))] == ["secrets"]


def test_the_role_has_one_rule_for_resources_with_the_same_verbs() -> None:
    made = role("training", RULES)
    assert (made["kind"], made["metadata"]) == ("Role", {"name": "tfdeploy", "namespace": "training"})
    core = next(rule for rule in made["rules"] if "secrets" in rule["resources"])
    assert core["apiGroups"] == [""]
    assert core["resources"] == ["secrets", "services"]
    assert all("*" not in rule["verbs"] + rule["resources"] for rule in made["rules"])


def test_the_documentation_has_all_rules_in_a_role_and_what_previews_read_beside_them() -> None:
    in_namespace, for_all = yaml.safe_load_all((ROOT / "docs/kubernetes-role.yaml").read_text())
    assert (in_namespace["kind"], for_all["kind"]) == ("Role", "ClusterRole")
    rules = {
        (group, resource, verb)
        for rule in in_namespace["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    needed = {(rule.group, rule.resource, verb) for rule in RULES for verb in rule.verbs}
    assert needed <= rules
    assert {resource for _, resource, _ in rules - needed} == {
        *("limitranges", "resourcequotas", "serviceaccounts", "localqueues", "pods")
    }


def test_the_documentation_has_no_resource_that_this_package_does_not_call() -> None:
    folder = Path(tfdeploy.backends.kubernetes.__file__).parent
    sources = "".join(path.read_text().lower() for path in folder.rglob("*.py") if path.name != "permissions.py")
    roles = yaml.safe_load_all((ROOT / "docs/kubernetes-role.yaml").read_text())
    resources = {name for role in roles for rule in role["rules"] for name in rule["resources"]}
    words = {name: name.rpartition("/")[2].removesuffix("s").removesuffix("ie") for name in resources}
    assert [name for name, word in sorted(words.items()) if word not in sources] == []
