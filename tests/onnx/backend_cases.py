#!/usr/bin/env python3
"""Generates the node and simple cases of ONNX's own backend suite and runs them.

    backend_cases.py ONNX_CASES FOLDER [LISTS]

ONNX_CASES is the program of onnx_cases.cc, FOLDER receives the cases (once). LISTS is a folder with
not_passing_VERSION.txt for each version of ONNX, the cases that are known not to pass, one `name:
reason` on a line: then another case that fails, or a listed one that passes, fails the test. Exit
code 77 (skipped) without Debian's python3-onnx, and for a version without a list.
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import coverage_page  # noqa: E402

SKIPPED = 77
VERSION_OF_THE_PAGE = '1.12'  # of ONNX, whose cases docs/coverage.md counts: that of Debian 12


def generate(folder):
    try:
        import numpy
        # ONNX 1.12 uses names that numpy 1.24 dropped.
        for name, plain in (('bool', bool), ('object', object), ('int', int), ('float', float)):
            if name not in numpy.__dict__:
                setattr(numpy, name, plain)
        import onnx.backend.test.cmd_tools
    except ImportError as missing:
        print(f'skipped: {missing} (Debian: python3-onnx)')
        sys.exit(SKIPPED)
    os.makedirs(os.path.join(folder, 'node'), exist_ok=True)  # ONNX 1.17 looks into it first
    sys.argv = ['cmd_tools', 'generate-data', '-o', folder]
    onnx.backend.test.cmd_tools.main()
    with open(os.path.join(folder, 'whole'), 'w', encoding='ascii'):
        pass


def list_of(folder):
    """The list for the version of ONNX that is installed."""
    import onnx
    version = '.'.join(onnx.__version__.split('.')[:2])
    path = os.path.join(folder, f'not_passing_{version}.txt')
    if not os.path.exists(path):
        print(f'skipped: no list for ONNX {version} ({path})')
        sys.exit(SKIPPED)
    return path


def known_failures(path):
    known = {}
    with open(path, encoding='utf-8') as lines:
        for line in lines:
            if line.strip() and not line.startswith('#'):
                name, _, reason = line.strip().partition(': ')
                known[name] = reason
    return known


def run(program, folder):
    """Reasons of the cases that fail, by name, and the number of all cases."""
    folders = [os.path.join(folder, kind) for kind in ('node', 'simple')]
    result = subprocess.run([program, *folders], stdout=subprocess.PIPE, text=True, check=True)
    failed, count = {}, 0
    for line in result.stdout.splitlines():
        verdict, _, rest = line.partition(' ')
        if verdict == 'FAIL':
            name, _, why = rest.partition(': ')
            failed[name] = why
        count += verdict in ('FAIL', 'pass')
    return failed, count


def main():
    program, folder, *lists = sys.argv[1:]
    if not os.path.exists(os.path.join(folder, 'whole')):
        generate(folder)
    known = known_failures(list_of(lists[0])) if lists else None
    failed, count = run(program, folder)
    print(f'{count - len(failed)} of {count} cases pass')
    wrong = 0
    for name, why in sorted(failed.items()):
        if known is None or name not in known:
            print(f'FAIL {name}: {why}')
            wrong += 1
    for name in sorted(known or {}):
        if name not in failed:
            print(f'{name} is listed as failing, but passes; take it off the list')
            wrong += 1
    said = coverage_page.numbers('# of the # node and simple cases')
    if lists and list_of(lists[0]).endswith(VERSION_OF_THE_PAGE + '.txt') and said != [count - len(failed), count]:
        print(f'docs/coverage.md says {said[0]} of {said[1]}')
        wrong += 1
    return 1 if wrong or count < 900 else 0


if __name__ == '__main__':
    sys.exit(main())
