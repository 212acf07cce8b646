"""Which tests cover the failure cases that are known from the field: NVML (N) and users' scripts (S).

A case whose tests are renamed or gone makes this fail. Cases that nothing covers yet are listed as such.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from profiler.rules.verdict import diagnose
from profiler.run.reader import Run
from tests.runs import make_run

ROOT = Path(__file__).parent
COVERED = {
    "N01": ("sources/test_nvml_absent.py", "sources/test_nvml_faults.py", "sources/test_nvml_every_call.py",
            "sources/test_nvml_combined.py", "sources/test_nvml_told.py"),
    "N02": ("sources/test_nvml_absent.py",
            "report/test_odd_drivers.py::test_n02_unified_memory_is_the_hosts_in_report_and_live",
            "report/test_slices.py::test_n02_host_memory_is_labelled_and_nothing_is_said_of_room",
            "app/test_live_slices.py::test_n02_memory_that_is_the_hosts_is_called_so"),
    "N04": ("sources/test_nvml_absent.py", "sources/test_injection.py"),
    "N05": ("sources/test_nvml_absent.py",
            "sources/test_nvml_told.py::test_n05_the_report_gives_each_state_of_the_library_its_own_advice"),
    "N07": ("sources/test_nvml.py", "sources/test_nvml_told.py",
            "report/test_odd_drivers.py::test_n07_a_name_of_wrong_bytes_goes_through_to_the_page"),
    "N08": ("sources/test_nvml.py", "sources/test_nvml_told.py",
            "cli/test_compare.py::test_n08_runs_by_different_memory_queries_are_compared_only_with_that_said"),
    "N09": ("sources/test_nvml_absent.py", "sources/test_nvml_mig.py", "analysis/test_devices.py",
            "report/test_slices.py", "app/test_live_slices.py"),
    "N11": ("sources/test_nvml.py", "sources/test_nvml_hang.py", "record/test_gpus.py"),
    "N12": ("sources/test_nvml_buffers.py", "sources/test_nvml_processes.py"),
    "N13": ("sources/test_nvml.py", "sources/test_injection.py", "sources/test_nvml_nonsense.py",
            "sources/test_nvml_told.py", "sources/test_nvml_energy.py", "analysis/test_energy.py"),
    "N14": ("sources/test_nvml.py", "sources/test_nvml_energy.py", "analysis/test_energy.py",
            "analysis/test_energy_use.py",
            "cli/test_energy.py::test_n14_the_report_has_a_section_with_the_method"),
    "N15": ("sources/test_nvml_processes.py", "report/test_odd_drivers.py",
            "test_machine.py::test_n15_platforms_on_which_the_driver_tells_less"),
    "N16": ("sources/test_nvml_processes.py", "report/test_odd_drivers.py",
            "test_machine.py::test_n16_containers_are_told_by_their_marks"),
    "N17": ("sources/test_nvml_lost.py", "record/test_gpus.py"),
    "S01": ("probe/test_scripts.py::test_module_with_spawned_workers_relative_data_and_a_status",
            "record/test_target.py::test_arguments_paths_and_modules"),
    "S02": ("experiments/test_matrix_runs.py::test_ranks_run_under_torchrun",
            "record/test_cases_tree.py::test_s02_no_flag_is_swallowed",
            "record/test_cases_tree.py::test_s02_each_life_of_a_rank_is_a_process_of_its_own"),
    "S05": ("record/test_cases_tree.py::test_s05_a_stop_leaves_nothing_of_the_tree",
            "record/test_cases_tree.py::test_s05_what_cannot_be_ended_is_listed",
            "record/test_target.py::test_terminated_recorder_ends_the_tree_in_stages",
            "record/test_processes.py::test_what_a_workload_leaves_behind_is_ended",
            "record/test_processes.py::test_a_workload_ends_with_its_killed_recorder"),
    "S06": ("record/test_cases_workers.py::test_s06_the_cause_is_explained",
            "record/test_cases_workers.py::test_s06_no_step_for_many_medians_is_said_while_it_lasts",
            "probe/test_cases.py", "sources/test_standstill.py"),
    "S07": ("record/test_cases_loops.py::test_s07_no_advice_to_add_workers_from_start_up",
            "record/test_cases_loops.py::test_s07_iterable_data_that_each_worker_gives_is_flagged",
            "analysis/test_summary.py::test_epoch_starts_are_apart_from_the_run_s_own",),
    "S08": ("record/test_cases_loops.py::test_s08_a_window_without_progress_is_closed_and_marked",
            "record/test_cases_loops.py::test_s08_the_job_lives_on"),
    "S09": ("run/test_killed.py::test_killed_at_any_moment", "run/test_full_disk.py::test_the_system_refuses",
            "record/test_control.py::test_full_disk_is_told_and_the_command_goes_on",
            "run/test_writer.py::test_network_file_systems_have_no_wal",
            "run/test_damaged.py::test_read_only_media",
            "record/test_kills.py", "record/test_disks.py", "record/test_outputs.py", "run/test_trouble.py",
            "cli/test_diagnose.py::test_s09_what_of_the_run_is_missing_is_a_note"),
    "S11": ("run/test_writer.py::test_very_short_runs",
            "run/test_writer.py::test_what_is_not_finite_is_missing",
            "record/test_cases_tree.py::test_s11_compare_refuses",
            "cli/test_compare.py::test_s11_of_fewer_than_three_steps_none_is_called_faster",
            "record/test_cases_counts.py::test_s11_steps_are_iterations_whatever_else_is_counted",
            "record/test_cases_counts.py::test_s11_what_is_no_number_is_missing_in_the_run",
            "test_cases.py::test_s11_very_short_runs_say_nothing_that_they_cannot"),
}
UNCOVERED: dict[str, str] = {}


@pytest.mark.parametrize("case", COVERED)
def test_a_case_has_its_tests(case: str) -> None:
    for place in COVERED[case]:
        name, _, function = place.partition("::")
        text = (ROOT / name).read_text(encoding="utf-8")
        assert re.search(rf"^def {function}\(" if function else r"^def test_", text, re.MULTILINE), place
    assert case not in UNCOVERED


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_s11_very_short_runs_say_nothing_that_they_cannot(steps: int, tmp_path: Path) -> None:
    """No percentile from two steps, no division by none."""
    with Run.open(make_run(tmp_path / "a.stepscope", steps=steps)) as run:
        told = diagnose(run).to_json()
    assert told["verdict"] == "unknown" and not told["findings"]
    step = told["step_ms"]
    assert step is None if steps < 2 else step["p5"] is step["p95"] is None
