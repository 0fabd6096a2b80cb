"""The files in `deploy/cluster`: valid for the tools that read them, with settings that exist and times that fit."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml
from typer.testing import CliRunner

from roost.api.security import PROBES
from roost.cli.main import app
from roost.settings import Settings, load
from tests.servers import ROOT
from tests.test_deploy import UNITS, unit

CLUSTER = ROOT / "deploy" / "cluster"
KUBERNETES = CLUSTER / "kubernetes"
GUIDE = (ROOT / "docs" / "guides" / "many-machines.md").read_text()
MANIFESTS = sorted(path.name for path in KUBERNETES.glob("*.yaml") if path.name != "kustomization.yaml")
VERSION = "1.33"
"""Of Kubernetes."""
COMPOSE: dict[str, Any] = yaml.safe_load((CLUSTER / "compose.yaml").read_text())
NODES = [name for name in COMPOSE["services"] if name.startswith("node-")]
SECRETS = {
    "ROOST_HOST": "roost.example.org",
    "ROOST_SECRET": "s" * 40,
    "POSTGRES_PASSWORD": "hush",
    "NATS_TOKEN": "t0ken",
}
KEYS = {"secret": "s" * 40, "store": "postgresql://roost:hush@db/roost", "nats": "tls://t0ken@nats:4222"}
"""Values of the Secret `roost`."""


def manifest(name: str) -> Any:
    return yaml.safe_load((KUBERNETES / name).read_text())


def pod() -> Any:
    return manifest("nodes.yaml")["spec"]["template"]["spec"]


def filled(text: str) -> str:
    """Replace variables as Compose does; one that is missing is an error."""
    return re.sub(r"\$\{(\w+)(?::\?[^}]*)?\}", lambda found: SECRETS[found[1]], text)


def variables(container: Any) -> dict[str, str]:
    """Return the variables of a container as Kubernetes sets them."""
    found = {}
    for one in container["env"]:
        source = one.get("valueFrom", {})
        if "secretKeyRef" in source:
            assert source["secretKeyRef"]["name"] == "roost"
            found[one["name"]] = KEYS[source["secretKeyRef"]["key"]]
        else:
            found[one["name"]] = one.get("value") or source["fieldRef"]["fieldPath"]
    return found


def loaded(file: Path, environ: dict[str, str]) -> Settings:
    """Load settings; every variable of Roost is a setting."""
    ours = {name for name in environ if name.startswith("ROOST_")} - {"ROOST_CONFIG"}
    assert {name.removeprefix("ROOST_").partition("__")[0].lower() for name in ours} <= set(Settings.model_fields)
    return load(file, environ)


def check_command(words: list[str]) -> None:
    path = words[: 2 if words[0] == "users" else 1]
    told = CliRunner().invoke(app, [*path, "--help"]).output
    assert told.startswith("Usage: "), words
    assert [word for word in words if word.startswith("--") and word not in told] == []


def test_compose_accepts_its_file() -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", CLUSTER / "compose.yaml"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("name", NODES)
def test_a_node_of_compose_has_valid_settings_and_time_to_stop(name: str) -> None:
    node = COMPOSE["services"][name]
    settings = loaded(CLUSTER / "roost.toml", {key: filled(value) for key, value in node["environment"].items()})
    assert settings.cluster is not None
    assert (settings.cluster.name, settings.cluster.nats) == (name, ("nats://t0ken@nats:4222",))
    assert settings.trusted_proxies == (COMPOSE["networks"]["default"]["ipam"]["config"][0]["subnet"],)
    assert float(node["stop_grace_period"].removesuffix("s")) > 2 * settings.limits.drain
    assert f"http://127.0.0.1:{settings.port}/readyz" in node["healthcheck"]["test"][-1]
    check_command(node["command"].split()[1:])


def test_compose_keeps_secrets_out_of_its_file_and_commands_before_the_nodes_have_no_cluster() -> None:
    text = (CLUSTER / "compose.yaml").read_text()
    assert set(re.findall(r"\$\{(\w+)", text)) == SECRETS.keys()
    assert set(re.findall(r"^([A-Z_]+)=", GUIDE, re.MULTILINE)) >= SECRETS.keys()
    setup = loaded(
        CLUSTER / "roost.toml",
        {key: filled(value) for key, value in COMPOSE["services"]["setup"]["environment"].items()},
    )
    assert (setup.cluster, setup.store) == (None, "postgresql://roost:hush@postgres/roost")


def test_caddy_knows_every_node_and_asks_whether_it_is_ready() -> None:
    text = (CLUSTER / "Caddyfile").read_text()
    assert text.count("{") == text.count("}")
    assert f"reverse_proxy {' '.join(f'{name}:{Settings().port}' for name in NODES)} {{" in text
    assert ("health_uri /readyz" in text, "flush_interval -1" in text) == (True, True)


@pytest.mark.parametrize("name", MANIFESTS)
def test_kubernetes_accepts_a_manifest(name: str) -> None:
    kubernetes_validate.validate(manifest(name), VERSION, strict=True)


def test_a_manifest_with_an_unknown_field_would_be_noticed() -> None:
    wrong = manifest("nodes.yaml")
    wrong["spec"]["template"]["spec"]["terminationGracePeriod"] = 40
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSION, strict=True)


def test_kustomize_has_every_manifest_and_makes_the_settings() -> None:
    made = manifest("kustomization.yaml")
    assert {*made["resources"], "first-account.yaml"} == set(MANIFESTS)
    [settings] = made["configMapGenerator"]
    [volume] = [one for one in pod()["volumes"] if one["name"] == "settings"]
    assert (settings["name"], settings["files"]) == (volume["configMap"]["name"], ["roost.toml"])
    [image] = made["images"]
    assert image["name"] == pod()["containers"][0]["image"]
    [first] = manifest("first-account.yaml")["spec"]["template"]["spec"]["containers"]
    assert first["image"] == f"{image['newName']}:{image['newTag']}"


def test_kustomize_renders_the_manifests() -> None:
    if (kubectl := shutil.which("kubectl")) is None:
        pytest.skip("no kubectl")
    made = subprocess.run([kubectl, "kustomize", KUBERNETES], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    kinds = {document["kind"] for document in yaml.safe_load_all(made.stdout)}
    assert kinds == {"Namespace", "ConfigMap", "Service", "Deployment", "PodDisruptionBudget"}


def test_a_pod_has_valid_settings_and_verifies_both_servers() -> None:
    [container] = pod()["containers"]
    given = variables(container)
    settings = loaded(KUBERNETES / "roost.toml", given)
    assert settings.cluster is not None
    assert settings.cluster.nats == ("tls://t0ken@nats:4222",)
    mounts = {one["mountPath"] for one in container["volumeMounts"]}
    certificates = {str(settings.cluster.ca), given["PGSSLROOTCERT"]}
    assert certificates == {"/tls/ca.crt"}
    assert (given["PGSSLMODE"], {"/tls", "/config", "/data", "/tmp"} - mounts) == ("verify-full", set())
    assert [one["name"] for one in container["volumeMounts"]] == [one["name"] for one in pod()["volumes"]]
    check_command(container["args"][1:])


@pytest.mark.parametrize("name", ["nodes.yaml", "first-account.yaml"])
def test_a_pod_runs_as_the_user_of_the_image(name: str) -> None:
    [user] = re.findall(r"^USER (\d+)$", (ROOT / "Containerfile").read_text(), re.MULTILINE)
    context = manifest(name)["spec"]["template"]["spec"]["securityContext"]
    assert (context["runAsUser"], context["fsGroup"]) == (int(user), int(user))


def test_a_pod_is_probed_where_the_server_answers_and_has_time_to_drain() -> None:
    [container] = pod()["containers"]
    [port] = container["ports"]
    assert port["containerPort"] == Settings().port
    probes = [container[name]["httpGet"] for name in ("startupProbe", "readinessProbe", "livenessProbe")]
    assert {probe["path"] for probe in probes} == PROBES
    assert {probe["port"] for probe in probes} == {port["name"]}
    pause = float(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod()["terminationGracePeriodSeconds"] > pause + 2 * Settings().limits.drain
    labels = manifest("nodes.yaml")["spec"]["template"]["metadata"]["labels"]
    budget = manifest("disruption-budget.yaml")["spec"]
    assert budget["selector"]["matchLabels"] == labels == manifest("service.yaml")["spec"]["selector"]
    assert 0 < budget["maxUnavailable"] < manifest("nodes.yaml")["spec"]["replicas"]


def test_the_first_account_is_created_without_a_cluster() -> None:
    [container] = manifest("first-account.yaml")["spec"]["template"]["spec"]["containers"]
    assert load(None, variables(container)).cluster is None
    check_command(container["args"][1:])


def test_a_unit_of_a_node_is_confined_like_the_one_of_a_single_process() -> None:
    made, single = unit("cluster/roost-node.service"), unit("roost.service")
    differs = {key for key in {*made, *single} if made.get(key) != single.get(key)}
    assert differs == {"Description", "EnvironmentFile", "ExecStart", "KillMode"}
    check_command(made["ExecStart"][0].split()[1:])


@pytest.mark.parametrize("name", [*UNITS, "cluster/roost-node.service"])
def test_systemd_accepts_a_unit(name: str, tmp_path: Path) -> None:
    if (analyze := shutil.which("systemd-analyze")) is None:
        pytest.skip("no systemd")
    for one in (*UNITS, "cluster/roost-node.service"):
        text = (ROOT / "deploy" / one).read_text().replace("/opt/roost/bin/roost", shutil.which("true") or "/bin/true")
        (tmp_path / Path(one).name).write_text(text)
    checked = subprocess.run(
        [analyze, "verify", "--recursive-errors=no", "--man=no", tmp_path / Path(name).name],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (checked.returncode, checked.stderr) == (0, "")


def test_the_guide_names_every_file() -> None:
    for file in CLUSTER.iterdir():
        assert f"deploy/cluster/{file.name}" in GUIDE, file.name
    for name in re.findall(r"--from-(?:literal|file)=(\w+)=", GUIDE):
        assert name in KEYS
    assert {name for name in KEYS if f"--from-literal={name}=" in GUIDE} == KEYS.keys()
