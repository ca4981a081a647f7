"""Search spaces: what methods declare, what files narrow, and what is refused with one line."""

from __future__ import annotations

from typing import Any

import optuna
import pytest

from studies.definition.space import make_space, plan_trials
from studies.definition.study import Study
from studies.proposer import split_objective
from studies.samplers import check
from tests.support.errors import raises_input_error


def study(method: str = "barlow_twins", **more: Any) -> Study:
    return Study.parse({"name": "x", "method": method, "sampler": "grid", **more}, "x.toml")


def test_the_declared_space_has_the_parameters_whose_conditions_hold() -> None:
    dropout = make_space(study(), "x").names
    eda = make_space(study(config={"view": "eda"}), "x").names
    both = make_space(study(config={"view": "crop+dropout"}), "x").names
    assert set(dropout) == {"learning_rate", "off_diagonal_weight", "dropout"}
    assert set(eda) == {"learning_rate", "off_diagonal_weight", "eda"}
    assert set(both) == {"learning_rate", "off_diagonal_weight", "dropout", "crop"}


def test_a_condition_on_a_searched_parameter_decides_for_each_configuration() -> None:
    space = {"eda": "declared", "view": ["dropout", "eda"], "learning_rate": [1e-5, 2e-5]}
    points = make_space(study(space=space), "x").points()
    assert len(points) == 2 * (1 + 2)  # learning rates x (dropout, or eda with its two rates)
    assert {p["view"] for p in points if "eda" in p} == {"eda"}
    assert {p["view"] for p in points if "eda" not in p} == {"dropout"}


def test_a_line_on_each_parameter_says_when_it_is_drawn() -> None:
    space = {"view": ["dropout", "eda"], "eda": "declared", "learning_rate": {"low": 1, "high": 2}}
    made = make_space(study(space=space), "x")
    assert made.describe() == [
        "view: dropout, eda",
        "learning_rate: 1 to 2",
        "eda: 0.1, 0.2 (when view = eda)",
    ]
    assert made.endless == ["learning_rate"]
    assert made.numbers == ["learning_rate"]


def test_the_file_narrows_fixes_and_replaces() -> None:
    space = {"*": "declared", "learning_rate": {"low": 1e-5, "high": 1e-4, "log": True}}
    made = make_space(study(config={"dropout": 0.2}, space=space), "x")
    assert set(made.names) == {"learning_rate", "off_diagonal_weight"}
    assert made["learning_rate"].log
    assert not made["learning_rate"].finite
    stepped = make_space(
        study("scd", space={"dropout_b": {"low": 0.13, "high": 0.17, "step": 0.01}}), "x"
    )
    assert [p["dropout_b"] for p in stepped.points()] == [0.13, 0.14, 0.15, 0.16, 0.17]


@pytest.mark.parametrize(
    ("space", "said"),
    [
        ({"temprature": [1]}, 'no parameter "temprature" (did you mean "temperature"?)'),
        ({"temperature": []}, "temperature: choices: expected at least one value"),
        ({"temperature": [0.1, 0.1]}, "choices: expected at least one value, each once"),
        ({"temperature": [1, 1.0]}, "choices: expected at least one value, each once"),
        ({"batch_size": {"low": 2, "high": 8, "step": 1.5}}, "step 1.5: expected a whole number"),
        ({"batch_size": {"low": 2, "high": 8.5}}, "high 8.5: expected a whole number"),
        ({"temperature": {"low": 0.5, "high": 0.5}}, "range from 0.5 to 0.5 is empty"),
        ({"temperature": {"low": 0, "high": 1, "log": True}}, "a log scale has a low above 0"),
        ({"mlm_probability": {"low": 0.1}}, "expected both low and high"),
        ({"temperature": {"low": 0.1, "high": 1.0, "stp": 0.1}}, 'unknown key "stp"'),
        ({"temperature": [0.1, -1.0]}, "greater than 0, not -1.0"),
        ({"temperature": 0.1}, "expected a list"),
        ({"pooling": "declared"}, "the method declares no range"),
        ({"batch_size": ["many"]}, "a valid integer"),
        (
            {"temperature": {"low": 0.1, "high": 0.5, "step": 0}},
            "step 0: expected a number above 0",
        ),
        (
            {"temperature": {"low": 0.1, "high": 0.5, "step": 3}},
            "step 3: expected a number above 0 that",
        ),
        ({"temperature": {"low": -1.0, "high": 1.0, "log": True}}, "a log scale has a low above 0"),
        ({"temperature": {"low": 0.1, "high": 1.0, "log": "no"}}, 'key "log"'),
        ({"temperature": {"low": 0.1, "high": 1.0, "when": "x"}}, 'key "when"'),
        ({"temperature": [[0.1], [0.2]]}, 'key "choices'),
        ({"temperature": {"low": float("nan"), "high": 1.0}}, "finite number"),
        ({"temperature": {"low": 0.1, "high": float("inf")}}, "finite number"),
    ],
)
def test_a_space_that_cannot_be_searched_is_refused(space: dict[str, Any], said: str) -> None:
    with raises_input_error() as error:
        make_space(study("simcse", space=space), "x.toml")
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("", 9),
        ("dropout_a < dropout_b", 6),
        ("0.05 < dropout_a < dropout_b", 3),
        ("dropout_a < dropout_b and dropout_b != 0.3", 3),
        ("dropout_b >= 2e-1", 6),
        ("dropout_a == dropout_b", 2),
        ("dropout_a < off_diagonal_weight", 3),  # a key that the space leaves as it is: 0.012
    ],
)
def test_where_keeps_the_cells_of_a_grid_that_meet_it(where: str, kept: int) -> None:
    space = {"dropout_a": [0.0, 0.1, 0.2], "dropout_b": [0.1, 0.2, 0.3]}
    made = study("scd", preset="code", where=where, space=space)
    assert len(plan_trials(made, make_space(made, "x"))) == kept


@pytest.mark.parametrize(
    "where",
    [
        "dropout_a <",
        "dropout_a dropout_b <",
        "dropout_a",
        "dropout_a < dropout_c",
        "temperature < 1",
        "dropout_a < 'x'",
        "dropout_a < 1e-x",
        "terms < dropout_a",
        "__import__(dropout_a) < 1",
    ],
)
def test_where_is_read_without_running_it(where: str) -> None:
    space = {"dropout_a": [0.0, 0.1], "dropout_b": [0.1, 0.2]}
    with raises_input_error() as error:
        make_space(study("scd", where=where, space=space), "x.toml")
    assert error.value.key is not None
    assert error.value.key.endswith("where")


@pytest.mark.parametrize(
    ("more", "key"),
    [
        (
            {
                "sampler": "tpe",
                "trials": 3,
                "where": "temperature < 1",
                "space": {"temperature": [0.1, 1.0]},
            },
            "where",
        ),
        (
            {"where": "temperature > 1", "space": {"temperature": [0.1, 1.0]}},
            None,
        ),
        (
            {"sampler": "grid", "space": {"temperature": {"low": 0.1, "high": 1.0}}},
            "sampler",
        ),
        ({"sampler": "tpe", "space": {"temperature": [0.1, 1.0]}}, "trials"),
        (
            {"sampler": "cmaes", "trials": 5, "space": {"temperature": [0.1, 1.0]}},
            "sampler",
        ),
        (
            {"sampler": "qmc", "trials": 5, "space": {"temperature": [0.1, 1.0]}},
            "sampler",
        ),
        (
            {"sampler": "grid", "trials": 5, "space": {"temperature": [0.1, 1.0]}},
            "sampler",
        ),
    ],
)
def test_a_sampler_that_does_not_fit_the_space_is_refused(
    more: dict[str, Any], key: str | None
) -> None:
    made = study("simcse", **more)
    with raises_input_error(key=key):
        check(made, make_space(made, "x.toml"), "x.toml")


@pytest.mark.parametrize(
    "condition",
    [{"poolng": "mean"}, {"pooling": "last"}, {"batch_size": 4}],
    ids=["unknown key", "value that is not searched", "key that is fixed"],
)
def test_a_parameter_that_is_never_searched_is_refused(condition: dict[str, Any]) -> None:
    space = {
        "temperature": {"low": 0.1, "high": 0.2, "when": condition},
        "pooling": ["cls", "mean"],
    }
    made = study("simcse", sampler="random", trials=2, space=space)
    with raises_input_error(key="space: temperature"):
        check(made, make_space(made, "x.toml"), "x.toml")


def test_the_parameter_whose_values_get_equal_numbers_of_trials_has_no_open_condition() -> None:
    rate = {"choices": [0.1, 0.2], "when": {"pooling": "mean"}}
    space = {"temperature": rate, "pooling": ["cls", "mean"]}
    with raises_input_error(file="x.toml", key="by"):
        make_space(study("simcse", by="temperature", space=space), "x.toml")
    fixed = study(
        "simcse", by="temperature", space={"temperature": rate}, config={"pooling": "mean"}
    )
    assert make_space(fixed, "x.toml").names == ["temperature"]


def test_the_first_trial_has_its_turn_of_by_where_the_default_is_none_of_its_values() -> None:
    more = {"sampler": "random", "trials": 1, "defaults_first": True, "by": "view"}
    values = {"view": ["eda", "crop"], "eda": "declared"}
    made = study(space=values, **more)
    space = make_space(made, "x")
    assert space.fixed["view"] == "dropout"
    first, second = plan_trials(made, space)
    assert first == {"view": "eda", "eda": space.fixed["eda"]}
    assert second == {"view": "crop"}
    trial = optuna.trial.FixedTrial({"view": "eda", "eda": 0.1})
    assert space.suggest(trial, first=True) == {"view": "eda", "eda": 0.1}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ({"trials": 0}, "trials"),
        ({"trials": 2.5}, "trials"),
        ({"steps": 0}, "steps"),
        ({"sampler": "tpee"}, "sampler"),
        ({"defaults_first": True}, None),  # a grid has its own order
        ({"seeds": [1], "held_out_seeds": [1, 2]}, None),  # seed 1 searches too
        ({"pruner": "median", "objective": "STS12", "suites": ["STS12"]}, None),  # no dev score
        ({"objective": "STS12"}, None),  # evaluated by no suite
        ({"objektive": "dev"}, "objektive"),
    ],
)
def test_a_study_that_contradicts_itself_is_refused(more: dict[str, Any], key: str | None) -> None:
    with raises_input_error(file="x.toml", key=key):
        study(**{"method": "simcse", **more})


def test_the_first_trial_may_be_what_the_method_itself_declares() -> None:
    more: dict[str, Any] = {
        "sampler": "random",
        "trials": 2,
        "defaults_first": True,
        "preset": "mini",
    }
    whole = make_space(study(**more), "x")
    assert set(whole.names) == {"learning_rate", "off_diagonal_weight", "dropout"}
    own = {name: whole.fixed[name] for name in whole.names}
    narrowed = study(space={"learning_rate": [7e-7], "dropout": {"low": 0.01, "high": 0.9}}, **more)
    assert plan_trials(narrowed, make_space(narrowed, "x")) == [{"dropout": own["dropout"]}, {}]
    shared = study(
        space={"dropout": [0.3, 0.4], "learning_rate": {"low": 1e-9, "high": 0.9}},
        by="dropout",
        **more,
    )
    rate = own["learning_rate"]
    assert plan_trials(shared, make_space(shared, "x")) == [
        {"dropout": 0.3, "learning_rate": rate},
        {"dropout": 0.4},
        {"dropout": 0.3},
        {"dropout": 0.4},
    ]


def test_an_objective_names_a_task_its_metric_and_aggregation() -> None:
    tasks = ["STS12", "geometry:STS-B"]
    assert split_objective("STS12", tasks) == ("STS12", "spearman", "all")
    assert split_objective("STS12:pearson:mean", tasks) == ("STS12", "pearson", "mean")
    assert split_objective("geometry:STS-B:uniformity:", tasks) == (
        "geometry:STS-B",
        "uniformity",
        "",
    )
    assert split_objective("STS1", tasks) is None
