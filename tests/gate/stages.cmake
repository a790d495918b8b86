# Every stage of the gate. scripts/setup has built the release programs before any of them runs.

fixture(vm-programs COMMAND install_vm_programs)
fixture(vm-guest BEHIND NEEDS vm-programs COMMAND make_vm_guest)
fixture(vm-workstation BEHIND NEEDS vm-guest COMMAND make_vm_workstation)
fixture(power_cut_disk BEHIND COMMAND release_program power_cut_disk)
fixture(build-asan BEHIND COMMAND build asan)
fixture(build-tsan BEHIND COMMAND build tsan)
fixture(configure-dev BEHIND COMMAND configure dev)
fixture(build-dev BEHIND COMMAND build dev)

# Installations and mounts leave processors idle, so these stages come first.
stage(conformance "gate;long" "conformance (pjdfstest, fsx)" COMMAND conformance)
stage(everyday "long" "everyday loads" COMMAND everyday)
stage(xfstests "long" "xfstests" COMMAND xfstests)
stage(packages "long" "packages in bare Debian systems" COMMAND packages)
stage(layout "gate;long;quick" "include direction, sizes" COMMAND python .ci/tidy.py)
stage(prose "gate;long;quick" "prose" COMMAND python .ci/prose.py)
stage(folders "gate;long;quick" "test folders" COMMAND check_test_folders)
stage(format "gate;long;quick" "clang-format" COMMAND format_check)
stage(lint "gate;long;quick" "ruff, mypy" COMMAND python_lint)
stage(quick-python "quick" "tests of classifierd and lint" COMMAND quick_python_tests)
stage(lab-python "gate;long;quick;lab" "tests of lab/python" COMMAND python_tests lab/python)
stage(python "gate;long" "python tests" COMMAND other_python_tests)
stage(powercut "gate;long" "power cuts from outside" NEEDS power_cut_disk COMMAND power_cuts)
stage(vm "gate;long" "virtual machine" NEEDS vm-workstation COMMAND virtual_machine)
stage(integration "gate;long" "integration tests" COMMAND integration_tests)
stage(plain "quick;long" "unit tests, no sanitizer" NEEDS build-dev COMMAND plain_tests)
# Two runs of CTest in one build folder would write the same log.
stage(unit "gate;long" "unit tests (address sanitizer)" NEEDS build-asan LOCKS asan
      COMMAND ctest_preset asan -LE crash -E ^lab_test[.])
stage(mutation "gate;long" "flushes and fences deleted" NEEDS build-asan
      COMMAND python tests/crash/mutation.py build/asan)
stage(fuzz "gate;long" "fuzzed media" NEEDS build-asan COMMAND fuzz)
stage(tsan "gate;long" "threaded tests (thread sanitizer)" NEEDS build-tsan COMMAND ctest_preset tsan)

stage(crash "gate;long" "crash tests (address sanitizer)" BEHIND NEEDS build-asan LOCKS asan
      COMMAND ctest_preset asan -L crash)
stage(sequences "gate;long" "crash states of operation sequences" BEHIND
      COMMAND crash_sequences)
stage(joint "gate;long" "crash states of META and DATA together" BEHIND COMMAND joint_cuts)
stage(faults "gate;long" "faults of DATA" BEHIND COMMAND fault_sweep)
stage(figures "gate;long;lab" "figures of the papers" BEHIND COMMAND figures)
stage(lab-unit "gate;long;lab" "unit tests of lab (address sanitizer)" BEHIND NEEDS build-asan
      LOCKS asan COMMAND ctest_preset asan -R ^lab_test[.])
stage(tidy "gate;long" "clang-tidy" BEHIND NEEDS configure-dev COMMAND tidy)

# A busy machine can fail a correct test, so these have nothing beside them.
stage(mounts "quick" "twenty integration tests" ALONE
      COMMAND pytest -m "quick and not long" tests/integration)
gate_test(integration-again ALONE LABELS gate long COMMAND integration_again)
