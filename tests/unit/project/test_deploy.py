"""The files in deploy/ say what the program takes, and their own tools find no fault in them."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from pathlib import Path
from subprocess import PIPE, STDOUT
from typing import Any
from zipfile import ZipFile

import pytest
import yaml
from payagg_testing.memory import MemoryStore

from payagg.entrypoints.cli.arguments import parser
from payagg.entrypoints.http.api.metrics import COUNTERS, HISTOGRAMS
from payagg.entrypoints.process.worker import JITTER, sweeps
from payagg.entrypoints.settings import read_settings, variables
from tests.support.assembly import services_over
from tests.support.extensions import REMOVED
from tests.support.machine import ROOT, program

DEPLOY = ROOT / "deploy"
MONITORING = DEPLOY / "monitoring"
UNITS = sorted(path for path in (DEPLOY / "systemd").iterdir() if path.is_file())
DROP_IN = DEPLOY / "systemd" / "payagg-.service.d" / "cell.conf"
BASE = DEPLOY / "kubernetes"
MANIFESTS = sorted(path for path in BASE.glob("*.yaml") if path.name != "kustomization.yaml")
TEXTS = sorted(path for path in DEPLOY.rglob("*") if path.is_file())
CONTAINERFILE = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
IMPORT_ALL = """
import importlib, pkgutil, payagg
for module in pkgutil.walk_packages(payagg.__path__, "payagg."):
    if not module.name.endswith(("__main__", "migrations.env")):
        assert "site-packages" in importlib.import_module(module.name).__file__
"""
PRIVATE = ["10.9.9.9", "100.64.0.1", "127.0.0.1", "169.254.169.254", "172.20.0.1", "192.168.1.1", "fd00::1", "fe80::1"]
SELECTOR = re.compile(r"\bpayagg_[a-z_]+")


def loaded(path: Path) -> list[Any]:
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def ran(*command: object, cwd: Path = ROOT, env: dict[str, str] | None = None) -> str:
    """What it said, which must have been that all is well."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=env, stdout=PIPE, stderr=STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout


def manifests() -> Iterator[dict[str, Any]]:
    for path in MANIFESTS:
        yield from loaded(path)


def pods() -> Iterator[tuple[str, dict[str, Any]]]:
    for one in manifests():
        spec = one.get("spec", {})
        if one["kind"] == "CronJob":
            spec = spec["jobTemplate"]["spec"]
        if "template" in spec:
            yield one["metadata"]["name"], spec["template"]["spec"]


COMPOSE = [one for file in (DEPLOY / "compose.yaml", DEPLOY / "cells" / "compose.yaml") for one in loaded(file)]
SERVICES = [service for one in COMPOSE for service in one["services"].values()]


@pytest.mark.skipif(bool(REMOVED), reason=f"units and manifests have {', '.join(sorted(REMOVED))}")
def test_every_command_is_one_that_the_program_takes() -> None:
    commands = [json.loads(re.findall(r"^CMD (\[.*\])$", CONTAINERFILE, re.MULTILINE)[0])]
    commands += [service["command"] for service in SERVICES if "command" in service]
    started = re.compile(r"^ExecStart=/opt/payagg/bin/payagg (.+)$", re.MULTILINE)
    commands += [line.split() for unit in UNITS for line in started.findall(unit.read_text())]
    commands += [pod["containers"][0]["args"] for _, pod in pods()]
    # An argument that is none ends the program.
    parsed = {parser().parse_args(command).command for command in commands}
    assert parsed >= {"serve", "worker", "migrate", "retention"}


@pytest.mark.skipif(bool(REMOVED), reason=f"units and manifests have {', '.join(sorted(REMOVED))}")
def test_every_variable_in_a_file_is_a_setting() -> None:
    named = {name for path in TEXTS for name in re.findall(r"\bPAYAGG_[A-Z_]+\b", path.read_text(encoding="utf-8"))}
    assert named - set(variables()) - {"PAYAGG_PORT"} == set()  # Kubernetes' own, in a comment


def test_the_example_is_accepted_once_it_is_filled_in() -> None:
    lines = (DEPLOY / ".env.example").read_text(encoding="utf-8").splitlines()
    given = dict(line.lstrip("#").split("=", 1) for line in lines if re.match(r"#?PAYAGG_", line))
    assert set(given) | {f"{name}_FILE" for name in given} >= set(variables())
    assert read_settings({name: value for name, value in given.items() if value}) == read_settings({})


def test_the_image_has_no_known_fault_runs_as_a_user_and_installs_by_hash() -> None:
    assert re.search(r"^USER 10001:10001$", CONTAINERFILE[CONTAINERFILE.rindex("\nFROM ") :], re.MULTILINE)
    for text in (CONTAINERFILE, (ROOT / "docs/operating/deploy.md").read_text(encoding="utf-8")):
        installs = re.findall(r"pip install (.+ requirements\S*\.lock)", text)
        assert installs
        assert all({"--no-deps", "--require-hashes"} <= set(one.split()) for one in installs)
    assert ran(program("hadolint"), DEPLOY / "Containerfile") == ""


@pytest.mark.release
def test_the_image_is_built_from_what_the_build_is_given(tmp_path: Path) -> None:
    given = re.findall(r"^!(\S+)$", (ROOT / ".containerignore").read_text(encoding="utf-8"), re.MULTILINE)
    for name in given:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    copied = re.findall(r"^COPY (?!--)(.+) \S+$", CONTAINERFILE, re.MULTILINE)
    assert set(" ".join(copied).split()) == set(given)
    [build] = re.findall(r"/bin/(pip wheel .+) \\$", CONTAINERFILE, re.MULTILINE)
    ran(sys.executable, "-m", *build.split(), "--quiet", "--disable-pip-version-check", cwd=tmp_path)
    [wheel] = (tmp_path / "dist").glob("payagg-*.whl")
    installed = tmp_path / "lib/python3.13/site-packages"
    with ZipFile(wheel) as packed:
        packed.extractall(installed)
    files = [path.relative_to(installed).as_posix() for path in installed.rglob("*.py")]
    assert [file for file in files if re.search("fake|demo|conftest|payagg_testing", file)] == []
    # All of it can be imported, and `dev` says why it is not there.
    environ = {"PYTHONPATH": str(installed)}
    ran(sys.executable, "-c", IMPORT_ALL, cwd=installed, env=environ)
    refused = subprocess.run(
        [sys.executable, "-m", "payagg", "dev"], cwd=installed, env=environ, capture_output=True, text=True, check=False
    )
    said = "`payagg dev` comes with another package: pip install payagg-testing 'payagg[embedded]'."
    assert (refused.returncode, refused.stderr) == (1, f"payagg: {said}\n")


def test_every_service_has_a_read_only_root_and_ours_have_no_capability() -> None:
    for service in SERVICES:
        database = ["/var/run/postgresql"] if "POSTGRES_USER" in service.get("environment", {}) else []
        assert (service["read_only"], service["tmpfs"]) == (True, ["/tmp", *database])
        assert "no-new-privileges:true" in service["security_opt"]
        assert service.get("cap_drop", []) == ([] if database else ["ALL"])
    for one in COMPOSE:
        assert {name: secret["file"] for name, secret in one["secrets"].items()} == {
            name: f"secrets/{name}" for name in one["secrets"]
        }
        [published] = [port for service in one["services"].values() for port in service.get("ports", ())]
        assert published.startswith("127.0.0.1:")


def test_what_a_service_names_its_file_has() -> None:
    for one in COMPOSE:
        for service in one["services"].values():
            assert set(service.get("depends_on", ())) <= set(one["services"])
            assert set(service.get("networks", ())) <= set(one["networks"])
            assert set(service.get("secrets", ())) <= set(one["secrets"])
            named = {volume.partition(":")[0] for volume in service.get("volumes", ())}
            assert {name for name in named if not name.startswith(".")} <= set(one["volumes"])


def test_whoever_is_waited_for_runs_on_and_says_in_the_compose_file_how_to_see_that_it_is_well() -> None:
    # podman-compose starts nothing that needs a container that has ended, as `migrate` has: servers wait for it
    # themselves. And an image that podman builds has no HEALTHCHECK.
    for one in COMPOSE:
        waits = [service["depends_on"].items() for service in one["services"].values() if "depends_on" in service]
        awaited = dict(item for items in waits for item in items)
        assert awaited
        for name, when in awaited.items():
            assert when == {"condition": "service_healthy"}
            check = one["services"][name].get("healthcheck", {})["test"]
            # podman-compose 1.3 gives a shell the words of a list without quotes.
            assert isinstance(check, str) or re.fullmatch(r"[\w ./-]+", " ".join(check)), name


def test_a_database_that_only_its_first_start_can_reach_is_not_yet_healthy() -> None:
    databases = [service for service in SERVICES if "POSTGRES_USER" in service.get("environment", {})]
    assert databases
    for service in databases:  # it listens on its socket alone then
        assert service["healthcheck"]["test"][:4] == ["CMD", "pg_isready", "--host", "127.0.0.1"]


def test_ours_believe_the_machine_about_who_its_proxy_speaks_for() -> None:
    for one in COMPOSE:
        [published] = [service for service in one["services"].values() if "ports" in service]
        subnets = [
            block["subnet"]
            for name in published["networks"]
            for block in one["networks"][name].get("ipam", {}).get("config", ())
        ]
        [machine] = [next(ip_network(subnet).hosts()) for subnet in subnets]
        believed = [
            service["environment"]["PAYAGG_TRUSTED_PROXIES"].split(",")
            for service in one["services"].values()
            if "serve" in service.get("command", ())
        ]
        assert believed
        assert all(f"{machine}/32" in networks for networks in believed)
    # HAProxy before the cells, which is published there, counts many people's connections for it.
    limit = re.findall(r"connection reject if .+", (DEPLOY / "cells" / "haproxy.cfg").read_text(encoding="utf-8"))
    assert [one.endswith(f" !{{ src {machine} }}") for one in limit] == [True]


def test_an_address_that_is_kept_for_a_service_is_none_that_the_engine_gives_to_others_first() -> None:
    kept = [
        (one, name, ip_address(at["ipv4_address"]))
        for one in COMPOSE
        for service in one["services"].values()
        if isinstance(service.get("networks"), dict)
        for name, at in service["networks"].items()
    ]
    assert kept
    for one, name, address in kept:  # from the range's beginning, one a container
        [block] = one["networks"][name]["ipam"]["config"]
        assert address in list(ip_network(block["subnet"]).hosts())[len(one["services"]) + 1 :]


def test_each_cell_of_the_compose_file_is_one_that_haproxy_and_its_sisters_know() -> None:
    text = (DEPLOY / "cells" / "haproxy.cfg").read_text(encoding="utf-8")
    cells = [
        service["environment"] for service in SERVICES if "PAYAGG_REFERENCE_PREFIX" in service.get("environment", {})
    ]
    [known] = {one["PAYAGG_CELLS"] for one in cells}
    servers = dict(re.findall(r"^    server (\w+) (\S+) ", text, re.MULTILINE))
    assert {f"{name}=http://{server}" for name, server in servers.items()} == set(known.split(","))
    assert {one["PAYAGG_REFERENCE_PREFIX"] for one in cells} == set(servers)


CONFIG_MAPS = {one["metadata"]["name"]: one["data"] for one in manifests() if one["kind"] == "ConfigMap"}


@pytest.mark.parametrize("environ", CONFIG_MAPS.values(), ids=CONFIG_MAPS)
def test_what_a_container_is_given_is_accepted(environ: dict[str, str], tmp_path: Path) -> None:
    secrets = {
        "PAYAGG_ENCRYPTION_KEYS_FILE": "k1:QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY=",
        "PAYAGG_DATABASE_URL_FILE": "postgresql://payagg@database/payagg",
    }
    given = {name: re.sub(r"^\$\{\w+:-\}$", "", value) for name, value in environ.items()}
    for name in given.keys() & {name for name in variables() if name.endswith("_FILE")}:
        (tmp_path / name).write_text(secrets.get(name, "a-secret-of-forty-characters-or-so-for-it"))
        given[name] = str(tmp_path / name)
    read_settings(given)


def test_every_pod_is_confined() -> None:
    for name, pod in pods():
        [container] = pod["containers"]
        own = container["securityContext"]
        assert (pod["enableServiceLinks"], pod["automountServiceAccountToken"]) == (False, False), name
        assert pod["securityContext"]["runAsNonRoot"] is True, name
        assert (own["readOnlyRootFilesystem"], own["allowPrivilegeEscalation"]) == (True, False), name
        assert own["capabilities"]["drop"] == ["ALL"], name
        assert container["resources"]["limits"]["memory"], name


def policy() -> dict[str, Any]:
    [base], [policy] = loaded(BASE / "kustomization.yaml"), loaded(BASE / "network.yaml")
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= base["labels"][0]["pairs"].items()
    return dict(policy["spec"])


def test_pods_reach_no_private_address_but_the_database() -> None:
    blocks = [(one["ipBlock"], rule["ports"]) for rule in policy()["egress"] for one in rule["to"] if "ipBlock" in one]

    def open_to(address: str) -> list[Any]:
        return [
            ports
            for block, ports in blocks
            if is_in(address, block["cidr"]) and not is_in(address, *block.get("except", ()))
        ]

    for private in PRIVATE:
        assert open_to(private) == [], private
    assert open_to("10.0.5.1") == [[{"protocol": "TCP", "port": 5432}]]


def is_in(address: str, *networks: str) -> bool:
    return any(ip_address(address) in ip_network(network) for network in networks)


def test_kubernetes_schemas_are_kept() -> None:
    [base] = loaded(BASE / "kustomization.yaml")
    assert sorted(base["resources"]) == [path.name for path in MANIFESTS]
    said = ran(program("kubernetes-validate"), "--strict", *MANIFESTS)
    assert said.count(" passed for resource ") == len(list(manifests()))


def test_the_overlay_that_a_reader_begins_with_patches_what_there_is() -> None:
    text = (ROOT / "docs/operating/deploy.md").read_text(encoding="utf-8")
    overlay = yaml.safe_load(re.findall(r"^```\n(resources: .+?)^```$", text, re.MULTILINE | re.DOTALL)[0])
    known = {(one["kind"], one["metadata"]["name"]): one for one in manifests()}
    for one in overlay["patches"]:
        [change] = json.loads(one["patch"])  # Kustomize reads what begins with a bracket as JSON
        place: Any = known[one["target"]["kind"], one["target"]["name"]]
        for name in change["path"].strip("/").split("/"):
            place = place[name]


def test_systemd_finds_no_fault_in_the_units_and_each_service_confined(tmp_path: Path) -> None:
    for unit in UNITS:
        text = unit.read_text(encoding="utf-8")
        (tmp_path / unit.name).write_text(text.replace("/opt/payagg/bin/payagg", shutil.which("true") or "/bin/true"))
    (tmp_path / DROP_IN.parent.name).mkdir()
    shutil.copy(DROP_IN, tmp_path / DROP_IN.parent.name)
    assert ran(program("systemd-analyze"), "verify", *(tmp_path / unit.name for unit in UNITS)) == ""
    services = [tmp_path / unit.name for unit in UNITS if unit.suffix == ".service"]
    ran(program("systemd-analyze"), "security", "--offline=true", "--threshold=30", *services)  # of 100


def told_metrics() -> set[str]:
    source = (ROOT / "src/payagg/entrypoints/http/api/metrics.py").read_text(encoding="utf-8")
    gauges = {name.removeprefix("payagg_") for name in re.findall(r"\"(payagg_[a-z_]+)\"", source)}
    histograms = {f"{name}_{part}" for name in HISTOGRAMS for part in ("bucket", "sum", "count")}
    return {f"payagg_{name}" for name in gauges | histograms | {f"{name}_total" for name in COUNTERS}}


def alerts() -> dict[str, dict[str, Any]]:
    [rules] = loaded(MONITORING / "alerts.yaml")
    return {rule["alert"]: rule for group in rules["groups"] for rule in group["rules"]}


def dashboard() -> list[str]:
    """What its panels ask for."""
    panels = json.loads((MONITORING / "dashboard.json").read_text(encoding="utf-8"))["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


def test_alerts_and_the_dashboard_ask_for_metrics_that_there_are() -> None:
    on_it = {name for text in dashboard() for name in SELECTOR.findall(text)}
    alarming = {name for rule in alerts().values() for name in SELECTOR.findall(rule["expr"])}
    assert (on_it | alarming) - told_metrics() == set()
    # Only durations of single requests, by route, and what nobody can do anything about, are not on the dashboard.
    assert {f"payagg_{name}_total" for name in COUNTERS} - on_it == {
        "payagg_anomalies_total",
        "payagg_idempotency_mismatches_total",
    }


def test_no_alert_is_raised_by_a_sweep_that_runs_less_often_than_it_looks() -> None:
    told = re.search(r'sweep!~"(.+?)".*\[15m\]', alerts()["PayaggSweepStuck"]["expr"])
    assert told is not None
    rare = [one.name for one in sweeps(services_over(MemoryStore())) if one.seconds * (1 + JITTER) > 15 * 60]
    assert [name for name in rare if not re.fullmatch(told[1], name)] == []


def test_every_alert_is_tried_by_promprogram(tmp_path: Path) -> None:
    promtool = program("promtool")
    [tests] = loaded(MONITORING / "alerts.test.yaml")
    cases = [case for one in tests["tests"] for case in one["alert_rule_test"]]
    tried = {(case["alertname"], bool(case["exp_alerts"])) for case in cases}
    assert {(name, is_due) for name in alerts() for is_due in (True, False)} - tried == set()
    assert "SUCCESS" in ran(promtool, "check", "rules", MONITORING / "alerts.yaml")
    assert "SUCCESS" in ran(promtool, "test", "rules", "alerts.test.yaml", cwd=MONITORING)
    token = tmp_path / "token"
    token.write_text("x")
    text = (MONITORING / "prometheus.yaml").read_text(encoding="utf-8")
    (tmp_path / "alerts.yaml").write_text((MONITORING / "alerts.yaml").read_text(encoding="utf-8"))
    (tmp_path / "prometheus.yaml").write_text(text.replace("/etc/prometheus/payagg-metrics-token", str(token)))
    assert "SUCCESS" in ran(promtool, "check", "config", tmp_path / "prometheus.yaml")


def test_every_expression_of_the_dashboard_is_promql(tmp_path: Path) -> None:
    rules = [{"record": f"panel:{number}", "expr": expr} for number, expr in enumerate(dashboard())]
    (tmp_path / "panels.yaml").write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    assert f"{len(rules)} rules found" in ran(program("promtool"), "check", "rules", tmp_path / "panels.yaml")


def test_the_balancer_sees_that_a_server_is_about_to_stop_before_it_does() -> None:
    for file in (DEPLOY / "haproxy.cfg", DEPLOY / "cells" / "haproxy.cfg"):
        text = file.read_text(encoding="utf-8")
        checks = re.findall(r" check inter (\d+)s fall (\d+) ", text)
        assert checks, file
        # A check may fall just before the stop is announced, and the next one take a moment.
        for every, failures in checks:
            assert int(every) * (int(failures) + 1) < read_settings({}).shutdown_delay.total_seconds()
        assert "option httpchk GET /readyz\n" in text
