#!/usr/bin/env python3
"""Containerfile, action.yml, .github and the pages about CI and clusters: packages, steps, forms, the Slurm job.

  ci_files.py --source ROOT --packages FILE --npumesh FILE --samples FILE

Names of packages are those of CPack and launch/install_deps. The action's steps run in bash as a runner
runs them, on a sample; srun is one that hands its program to mpirun. Exit code 77 (skipped) without
Debian's python3-yaml.
"""

import argparse
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

try:
    import yaml
except ImportError:
    print("skipped: no module yaml (Debian: python3-yaml)")
    sys.exit(77)

options = None
INPUT = re.compile(r"\$\{\{ (inputs\.\w+|github\.action_path) \}\}")
OWN = {"npumesh-runtime", "npumesh-tools"}
# Packages of install_deps that bring one which a runner needs.
BROUGHT_BY = {"g++": "build-essential"}


def text_of(name):
    with open(os.path.join(options.source, name), encoding="utf-8") as file:
        return file.read()


def cpack_value(name):
    with open(options.packages, encoding="utf-8") as file:
        return re.search(rf'^set\({name} "(.*)"\)$', file.read(), re.M).group(1)


def dependencies():
    return set(cpack_value("CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS").split(", "))


def recommendations():
    return set(cpack_value("CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS").split(", "))


def packages_of_install_deps():
    """What launch/install_deps installs without options, read by bash."""
    block = re.search(r"^packages=\(.*?^\)", text_of("launch/install_deps"), re.S | re.M).group(0)
    done = subprocess.run(["bash", "-c", f'{block}\nprintf "%s\\n" "${{packages[@]}}"'],
                          capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def stages():
    """The instructions of each stage of Containerfile, lines joined."""
    text = re.sub(r"^#.*\n", "", text_of("Containerfile"), flags=re.M)
    text = re.sub(r"\\\n\s*", "", text)
    return [stage.splitlines() for stage in re.split(r"^(?=FROM )", text, flags=re.M)[1:]]


def apt_words(command):
    """Packages that an apt-get install names; files of ours by the package's name."""
    words = re.search(r"apt-get install ([^&\n]*)", command).group(1).split()
    names = (re.sub(r"^.*/|_[^/]*\.deb$", "", word) for word in words if not word.startswith("-"))
    return {name for name in names if name}


def steps():
    return yaml.safe_load(text_of("action.yml"))["runs"]["steps"]


class Packages(unittest.TestCase):
    def test_containerfile_builds_as_the_scripts_do(self):
        build, _ = stages()
        commands = [line.removeprefix("RUN ").split()[0] for line in build if line.startswith("RUN ")]
        self.assertEqual(commands, ["launch/install_deps", "launch/package"])
        for command in commands:
            self.assertTrue(os.access(os.path.join(options.source, command), os.X_OK), command)

    def test_containerfile_runs_with_what_cpack_names(self):
        _, run = stages()
        (line,) = [line for line in run if "apt-get install" in line]
        self.assertEqual(apt_words(line), OWN | recommendations() | {"python3"})
        self.assertIn("source=/source/build/packages", line)

    def test_containerfile_has_suites_that_in_chroot_knows(self):
        (suite,) = re.findall(r"^ARG SUITE=(\w+)$", text_of("Containerfile"), re.M)
        self.assertIn(suite, re.search(r"SUITE \((\w+ or \w+)\)", text_of("launch/scripts/in_chroot")).group(1))
        self.assertEqual([stage[0].split()[1] for stage in stages()], ["debian:${SUITE}-slim"] * 2)

    def test_cpack_makes_the_packages_that_are_installed(self):
        names = {cpack_value(f"CPACK_DEBIAN_{part}_PACKAGE_NAME") for part in ("RUNTIME", "TOOLS")}
        self.assertEqual(names, OWN)

    def test_the_page_lists_them_all(self):
        section = text_of("docs/ci.md").partition("## What a runner needs")[2]
        listed = set(re.findall(r"^\| `([^`]+)` \|", section, re.M))
        self.assertEqual(listed, OWN | dependencies() | recommendations() | {"python3"})

    def test_install_deps_names_what_they_need(self):
        installed = packages_of_install_deps()
        for name in dependencies() | recommendations() | {"python3", "python3-yaml"}:
            self.assertIn(BROUGHT_BY.get(name, name), installed)


class Workflow(unittest.TestCase):
    """What this repository itself runs at each push."""

    def job(self):
        (job,) = yaml.safe_load(text_of(".github/workflows/ci.yml"))["jobs"].values()
        return job

    def test_it_runs_the_two_commands_of_the_readme(self):
        commands = self.job()["strategy"]["matrix"]["command"]
        block = re.search(r"## Quick start.*?```sh\n(.*?)```", text_of("README.md"), re.S).group(1)
        self.assertEqual(commands, [line.split()[0] for line in block.splitlines()])
        for command in commands:
            self.assertTrue(os.access(os.path.join(options.source, command), os.X_OK), command)

    def test_it_runs_in_a_debian_that_the_scripts_know(self):
        name, _, suite = self.job()["container"]["image"].partition(":")
        self.assertEqual(name, "debian")
        self.assertIn(suite, re.search(r"SUITE \((\w+ or \w+)\)", text_of("launch/scripts/in_chroot")).group(1))

    def test_values_reach_its_scripts_by_variables_only(self):
        scripts = [step for step in self.job()["steps"] if "run" in step]
        self.assertEqual([step["env"] for step in scripts if "env" in step],
                         [{"COMMAND": "${{ matrix.command }}"}])
        for step in scripts:
            self.assertNotIn("${{", step["run"])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "says it")
            with open(path, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\nexit 7\n")
            os.chmod(path, stat.S_IRWXU)
            done = subprocess.run(["bash", "-e", "-c", scripts[-1]["run"]], check=False,
                                  env={**os.environ, "COMMAND": path})
        self.assertEqual(done.returncode, 7, "the code of the command is the code of the step")


# What a form may consist of, and what each part of it needs besides its label.
FORM_PARTS = {"markdown": {"value"}, "input": {"label"}, "textarea": {"label"}}


class Community(unittest.TestCase):
    def test_forms_have_what_a_form_needs(self):
        folder = os.path.join(options.source, ".github/ISSUE_TEMPLATE")
        forms = sorted(name for name in os.listdir(folder) if name != "config.yml")
        self.assertEqual(forms, ["fault.yml", "missing.yml"])
        for name in forms:
            form = yaml.safe_load(text_of(f".github/ISSUE_TEMPLATE/{name}"))
            self.assertEqual(set(form), {"name", "description", "labels", "body"}, name)
            asked = [part for part in form["body"] if part["type"] != "markdown"]
            ids = [part["id"] for part in asked]
            self.assertEqual(len(set(ids)), len(ids), name)
            for part in form["body"]:
                self.assertLessEqual(FORM_PARTS[part["type"]], set(part["attributes"]), name)
            self.assertTrue(any(part.get("validations", {}).get("required") for part in asked), name)

    def test_commands_of_the_forms_are_npumeshs(self):
        help_text = subprocess.run([options.npumesh, "--help"], capture_output=True, text=True, check=True).stdout
        said = re.findall(r"\bnpumesh ([a-z]+)", text_of(".github/ISSUE_TEMPLATE/fault.yml"))
        said += re.findall(r"`npumesh ([a-z]+)", text_of("SECURITY.md"))
        self.assertLessEqual({"version", "doctor", "record"}, set(said))
        for command in said:
            self.assertRegex(help_text, rf"(?m)^ +{command}\b")

    def test_one_contact_everywhere(self):
        contact = re.search(r"<(.*)>", cpack_value("CPACK_PACKAGE_CONTACT")).group(1)
        for name in ("SECURITY.md", "CODE_OF_CONDUCT.md", ".github/CODEOWNERS"):
            self.assertEqual(set(re.findall(r"[\w.]+@[\w.]+\w", text_of(name))), {contact}, name)


class Sandbox:
    """A folder with the samples, and a runner that has npumesh in PATH."""

    def __init__(self, home):
        self.home = home
        self.programs = os.path.join(home, "programs")
        os.mkdir(self.programs)
        shutil.copy(options.npumesh, os.path.join(self.programs, "npumesh"))
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith(("NPUMESH_", "PMIX_", "OMPI_COMM"))}
        self.environment.update(PATH=f"{self.programs}:{os.environ['PATH']}", HOME=home)
        self.must(options.samples, ".")

    def run(self, *words, environment=None):
        done = subprocess.run(words, cwd=self.home, env={**self.environment, **(environment or {})},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=1200, check=False)
        return done.returncode, done.stdout

    def must(self, *words):
        code, output = self.run(*words)
        if code != 0:
            raise AssertionError(f"{words} ended with {code}\n{output}")

    def program(self, name, text):
        path = os.path.join(self.programs, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, stat.S_IRWXU)

    def step(self, step, inputs):
        """Runs one step as a runner does."""
        values = {f"inputs.{name}": value for name, value in inputs.items()}
        values["github.action_path"] = options.source
        environment = {name: INPUT.sub(lambda match: values[match.group(1)], text)
                       for name, text in step["env"].items()}
        return self.run("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"],
                        environment=environment)

    def act(self, **given):
        """Runs the action: exit code of the first step that fails, output, names of the steps that ran."""
        described = yaml.safe_load(text_of("action.yml"))["inputs"]
        inputs = {name: str(entry.get("default", "")) for name, entry in described.items()}
        inputs.update(given)
        failed, said, ran = 0, "", []
        for step in steps():
            wanted = step.get("if", "success()")
            always = wanted.startswith("always()")
            condition = "test" in ran and failed != 0 if "steps.test.outcome" in wanted else True
            if "run" not in step or (failed and not always) or not condition:
                continue
            code, output = self.step(step, inputs)
            ran.append(step["id"])
            said += output
            failed = failed or code
        return failed, said, ran

    def reports(self, name):
        return os.path.join(self.home, "npumesh-reports", name)


def errors(text):
    return re.findall(r"^::error title=([^:]*)::(.*)$", text, re.M)


class Action(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="npumesh-ci-")
        cls.sandbox = Sandbox(cls.folder.name)
        cls.sandbox.must("npumesh", "launch", "-n", "4", "--", "run", "mp/", "--seed", "3", "--outputs", "expected/")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def setUp(self):
        shutil.rmtree(self.sandbox.reports(""), ignore_errors=True)

    def test_inputs_reach_scripts_by_variables_only(self):
        described = yaml.safe_load(text_of("action.yml"))
        self.assertEqual(described["runs"]["using"], "composite")
        used = set(re.findall(r"inputs\.(\w+)", str(steps())))
        self.assertEqual(used, set(described["inputs"]))
        for step in (step for step in steps() if "run" in step):
            self.assertEqual(step["shell"], "bash")
            self.assertNotIn("${{", step["run"], "a value in a script is run as words of the script")

    def test_the_page_lists_the_inputs(self):
        section = text_of("docs/ci.md").partition("| input |")[2].partition("\n\n")[0]
        listed = {name for row in re.findall(r"^\| (`[^|]*) \|", section, re.M)
                  for name in re.findall(r"`(\w+)`", row)}
        self.assertEqual(listed, set(yaml.safe_load(text_of("action.yml"))["inputs"]))

    def test_a_run_that_matches_passes(self):
        code, said, ran = self.sandbox.act(model="mp", check="expected", arguments="--seed 3")
        self.assertEqual((code, errors(said), ran), (0, [], ["install", "doctor", "test"]), said)
        root = xml.etree.ElementTree.parse(self.sandbox.reports("junit.xml")).getroot()
        self.assertEqual((root.get("tests"), root.get("failures"), root.get("errors")), ("4", "0", "0"))
        for name in ("report.json", "doctor.txt", "records"):
            self.assertTrue(os.path.exists(self.sandbox.reports(name)), name)

    def test_outputs_that_differ_are_annotated(self):
        code, said, ran = self.sandbox.act(model="mp", check="expected", arguments="--seed 4")
        self.assertEqual((code, ran[-1]), (1, "annotate"), said)
        self.assertEqual([title for title, _ in errors(said)],
                         [f"rank {rank} output 0 float32[8%2C32]" for rank in range(4)])
        for _, text in errors(said):
            self.assertIn("256 of 256 elements", text)
            self.assertIn("%0A", text)

    def test_a_lost_rank_is_annotated(self):
        code, said, _ = self.sandbox.act(model="mp", arguments="--inject kill:rank=2")
        self.assertEqual(code, 5, said)
        ((title, text),) = errors(said)
        # The ranks that are left write the report, or npumesh launch when none had the time.
        self.assertRegex(title, "^(rank 2|run) run$")
        self.assertNotEqual(text, "")

    def test_a_model_that_is_not_there_is_annotated(self):
        code, said, _ = self.sandbox.act(model="$(touch ran)")
        self.assertEqual(code, 3, said)
        self.assertEqual(errors(said), [("rank 0 run", "$(touch ran): no such file or folder")])
        self.assertFalse(os.path.exists(os.path.join(self.sandbox.home, "ran")))

    def test_a_run_without_report_is_annotated(self):
        code, said, _ = self.sandbox.act(model="mp", arguments="--no-such-option")
        self.assertEqual(code, 2, said)
        ((title, text),) = errors(said)
        self.assertEqual(title, "npumesh")
        self.assertIn("junit.xml: No such file or directory", text)

    def test_packages_are_installed_by_name(self):
        folder = os.path.join(self.sandbox.home, "debs")
        os.makedirs(folder, exist_ok=True)
        install = steps()[0]
        code, said = self.sandbox.step(install, {"packages": "debs"})
        self.assertEqual((code, len(errors(said))), (3, 1), said)
        self.assertIn("debs has no npumesh-runtime_*.deb", said)
        for name in ("npumesh-runtime_1_amd64.deb", "npumesh-tools_1_amd64.deb", "npumesh-dev_1_amd64.deb"):
            with open(os.path.join(folder, name), "w", encoding="utf-8"):
                pass
        self.sandbox.program("apt-get", '#!/bin/sh\necho "apt-get $*"\n')
        self.sandbox.program("sudo", '#!/bin/sh\nexec "$@"\n')
        code, said = self.sandbox.step(install, {"packages": "debs"})
        self.assertEqual(code, 0, said)
        self.assertIn("apt-get update", said)
        self.assertEqual(apt_words(said), OWN | recommendations() | {"python3"})


class Annotations(unittest.TestCase):
    def say(self, text, *words):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "report.xml"), "w", encoding="utf-8") as file:
                file.write(text)
            done = subprocess.run([os.path.join(options.source, "launch/scripts/annotations"), *(words or ["report.xml"])],
                                  cwd=folder, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    def test_ten_lines_at_most(self):
        case = '<testcase classname="rank {0}" name="a:b"><failure message="100% {0}"/></testcase>'
        for count in (1, 10, 11, 64):
            cases = "".join(case.format(rank) for rank in range(count))
            code, said = self.say(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
            self.assertEqual((code, len(said.splitlines())), (1, min(count, 10)))
            self.assertEqual(said.splitlines()[0], "::error title=rank 0 a%3Ab::100%25 0")
            if count > 10:
                self.assertIn(f"{count - 9} more failed", said)

    def test_nothing_failed(self):
        self.assertEqual(self.say('<testsuites><testcase name="a"><skipped/></testcase></testsuites>'), (0, ""))

    def test_what_is_no_report(self):
        for text, reason in (("", "no XML"), ("<html/>", "<html>"), ("<testsuites>", "no XML")):
            code, said = self.say(text)
            self.assertEqual((code, len(errors(said))), (3, 1))
            self.assertIn(reason, said)

    def test_usage(self):
        self.assertEqual(self.say("", "a", "b"), (2, ""))
        self.assertEqual(self.say("", "--help")[0], 0)


# Takes srun's options off, and hands the program to mpirun.
SRUN = """#!/bin/bash
echo "srun $*" >>srun.log
while [[ $1 == --* ]]; do shift; done
exec mpirun --allow-run-as-root --oversubscribe --bind-to none -n "$SLURM_NTASKS" "$@"
"""


class Slurm(unittest.TestCase):
    def test_the_job_of_the_page_runs(self):
        script = re.search(r"<!-- slurm -->\n```bash\n(.*?)```", text_of("docs/clusters.md"), re.S).group(1)
        with tempfile.TemporaryDirectory(prefix="npumesh-slurm-") as home:
            sandbox = Sandbox(home)
            sandbox.program("srun", SRUN)
            job = {"SLURM_NTASKS": "4", "SLURM_NTASKS_PER_NODE": "4", "SLURM_CPUS_PER_TASK": "1"}
            code, said = sandbox.run("bash", "-c", script, environment=job)
            self.assertEqual(code, 0, said)
            with open(os.path.join(home, "srun.log"), encoding="utf-8") as file:
                calls = file.read().splitlines()
            self.assertEqual(len(calls), 2)
            for call in calls:
                self.assertIn("--mpi=pmix", call)
            self.assertEqual(sorted(os.listdir(f"{home}/out")), [f"rank_{rank}" for rank in range(4)])
            root = xml.etree.ElementTree.parse(f"{home}/report.xml").getroot()
            self.assertEqual((root.get("failures"), root.get("errors")), ("0", "0"))
            # A node that has other ranks than the job was told.
            code, said = sandbox.run("bash", "-c", script, environment={**job, "SLURM_NTASKS_PER_NODE": "2"})
            self.assertEqual(code, 3, said)
            self.assertIn("LOCAL_WORLD_SIZE is 2, but 4 rank(s) share memory on this node", said)


def main():
    global options
    parser = argparse.ArgumentParser()
    for name in ("source", "packages", "npumesh", "samples"):
        parser.add_argument(f"--{name}", required=True)
    options, words = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *words])


if __name__ == "__main__":
    main()
