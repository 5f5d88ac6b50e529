"""Calls of kubectl, with a small program in its place that answers from files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ots_tunnel_operator.plugin.command import cli, run
from ots_tunnel_operator.plugin.kubectl import Kubectl, KubectlFailed
from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.plugin.report import Report, report_of
from tests.support.operator.plugin_objects import NOW, body, healthy, paused, report_document, unseen

PROGRAM = """#!/bin/sh
echo "$*" >> {folder}/calls
for answer in {folder}/answers/*; do
  case "$*" in
    *"$(cat $answer/key)"*) cat $answer/said >&2; cat $answer/told; exit $(cat $answer/code);;
  esac
done
echo "no answer for $*" >&2
exit 9
"""


class Answers:
    """A `kubectl` on the PATH: it notes its arguments, and answers by the first text that they contain."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        program = folder / "kubectl"
        program.write_text(PROGRAM.format(folder=folder))
        program.chmod(0o755)
        (folder / "answers").mkdir()
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def add(self, key: str, told: object = "", said: str = "", code: int = 0) -> None:
        place = self._folder / "answers" / f"{len(list((self._folder / 'answers').iterdir())):03}"
        place.mkdir()
        text = told if isinstance(told, str) else json.dumps(told)
        for name, content in (("key", key), ("told", text), ("said", said), ("code", str(code))):
            (place / name).write_text(content)

    @property
    def calls(self) -> list[str]:
        return (self._folder / "calls").read_text().splitlines()


@pytest.fixture
def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Answers:
    return Answers(tmp_path, monkeypatch)


def pods(*phases: str) -> dict[str, object]:
    return {"items": [{"metadata": {"name": f"w-{n}"}, "status": {"phase": phase}} for n, phase in enumerate(phases)]}


def test_flags_and_namespace_go_to_every_call(answers: Answers) -> None:
    answers.add("get tablestoretunnels", {"items": [body("b"), body("a")]})

    found = Kubectl(("--context=prod",), "shop").objects(selector="team=shop")

    assert [ott.name for ott in found] == ["a", "b"]
    assert answers.calls == [
        "--context=prod --namespace shop get tablestoretunnels.ots-tunnel.dev --selector team=shop --output=json"
    ]


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("why orders-copy", "kubectl ott resume --context=prod orders-copy -n shop"),
        ("restart orders-copy", "so no worker runs: kubectl ott resume --context=prod orders-copy -n shop"),
        ("events orders-copy", "kubectl ott why --context=prod orders-copy -n shop"),
    ],
)
def test_commands_that_are_shown_have_the_flags_of_their_caller(
    answers: Answers, capsys: pytest.CaptureFixture[str], words: str, shown: str
) -> None:
    answers.add("get tablestoretunnels", paused().body)
    answers.add("get deployments", {"metadata": {"name": "orders-copy"}})
    answers.add("get events", {"items": []})
    answers.add("get leases", said="Error from server (Forbidden)", code=1)

    run(lambda: cli.main([*words.split(), "--context", "prod"], standalone_mode=False))

    told = " ".join("".join(capsys.readouterr()).split())
    assert shown in told
    assert "kubectl ott resume orders-copy" not in told


def test_the_last_line_of_kubectl_is_the_error(answers: Answers) -> None:
    said = "E1123 memcache.go:265] couldn't get current server API group list\nUnable to connect to the server: EOF\n"
    answers.add("get", said=said, code=1)

    with pytest.raises(KubectlFailed, match=r"^Unable to connect to the server: EOF$"):
        Kubectl().objects()


def test_a_cluster_without_the_definition_says_what_to_install(answers: Answers) -> None:
    answers.add("get", said='error: the server doesn\'t have a resource type "tablestoretunnels"', code=1)

    with pytest.raises(KubectlFailed, match=r"resource type .*: install the chart"):
        Kubectl().objects()


def test_a_missing_kubectl_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(KubectlFailed, match="kubectl is not on the PATH"):
        Kubectl().objects()


def test_a_kubectl_that_fails_without_a_word_is_an_error(answers: Answers) -> None:
    answers.add("get", code=1)

    with pytest.raises(KubectlFailed, match="without a word"):
        Kubectl().objects()


def test_only_a_deployment_that_does_not_exist_is_none(answers: Answers) -> None:
    answers.add("get deployments", said='Error from server (NotFound): deployments.apps "x" not found', code=1)
    assert Kubectl().deployment(healthy()) is None


def test_a_deployment_that_may_not_be_read_is_an_error(answers: Answers) -> None:
    answers.add("get deployments", said="Error from server (Forbidden): no", code=1)
    with pytest.raises(KubectlFailed, match="Forbidden"):
        Kubectl().deployment(healthy())


def test_each_worker_answers_for_itself(answers: Answers) -> None:
    answers.add("get pods", pods("Running", "Pending", "Running", "Running", "Succeeded"))
    answers.add("w-0:8080/proxy/channels", report_document((0, 12, False)))
    answers.add("w-2:8080/proxy/channels", said='Error from server (Forbidden): pods "w-2" is forbidden', code=1)
    answers.add("w-3:8080/proxy/channels", {"channels": [{"id": "x"}]})

    found = Kubectl().reports(healthy())

    assert [report.pod for report in found] == ["w-0", "w-1", "w-2", "w-3"]
    assert found[0] == report_of("w-0", report_document((0, 12, False)))
    assert found[1] == Report("w-1", failure="it is Pending")
    assert found[2] == Report("w-2", failure='(Forbidden): pods "the pod" is forbidden')
    assert found[3].failure.startswith("its answer is of another release (KeyError")


def test_channels_that_a_worker_has_handed_back_are_not_its_own() -> None:
    document = report_document((0, 12, False), (1, 3, False))
    document["channels"][1]["state"] = "TERMINATED"

    assert [channel.lag for channel in report_of("w", document).channels or ()] == [12]


def test_the_lease_of_the_operator_is_read_where_the_object_names_it(answers: Answers) -> None:
    answers.add("get leases", {"spec": {"holderIdentity": "op-1", "renewTime": "2026-11-20T08:15:20.000000Z"}})

    serving = Kubectl().serving(healthy())

    assert serving is not None
    assert (serving.lease, serving.holder) == ("ots-tunnel-system/ots-tunnel-operator", "op-1")
    assert not serving.is_gone(NOW)
    assert serving.is_gone(NOW + 120)
    assert Kubectl().serving(unseen()) is None
    assert answers.calls == [
        "--namespace ots-tunnel-system get leases.coordination.k8s.io ots-tunnel-operator --output=json"
    ]


def test_a_lease_that_many_objects_name_is_read_once(answers: Answers) -> None:
    answers.add("get leases", {"spec": {}})

    assert [found.lease for found in Kubectl().servings([healthy(), unseen(), healthy()])] == [
        "ots-tunnel-system/ots-tunnel-operator"
    ]
    assert len(answers.calls) == 1


@pytest.mark.parametrize(("said", "is_gone"), [("(NotFound): leases", True), ("(Forbidden): no", False)])
def test_only_a_lease_that_does_not_exist_is_a_gone_operator(answers: Answers, said: str, is_gone: bool) -> None:
    answers.add("get leases", said=f"Error from server {said}", code=1)

    serving = Kubectl().serving(Ott(body()))

    assert serving is not None
    assert serving.is_gone(NOW) == is_gone
    assert bool(serving.failure) != is_gone


def test_an_interrupt_is_its_own_code(capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    assert run(interrupted) == 130
    assert capsys.readouterr().err == ""
