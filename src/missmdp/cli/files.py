"""From the words that a user typed to models, policies and files to write."""

from __future__ import annotations

import glob
import hashlib
import importlib
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import click

from missmdp.benchmarks.registry import is_benchmark, load_benchmark
from missmdp.cli.failures import echo, what_is_wrong
from missmdp.errors import FormatError, MissMDPError, ModelError
from missmdp.files import read_bytes, read_text, removed_after
from missmdp.model.mdp import FactoredMDP
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP
from missmdp.model.tables import Columns, meaning
from missmdp.words import is_text

if TYPE_CHECKING:
    from missmdp.data.dataset import Dataset
    from missmdp.experiments.baselines import MadePolicy
    from missmdp.plan.alpha import AlphaVectorPolicy
    from missmdp.plan.factored.policy import MemoryPolicy
    from missmdp.plan.finite.controller import FiniteController
    from missmdp.plan.ppo.policy import PPOPolicy

__all__ = [
    "POLICY_FILES",
    "STANDARD_OUTPUT",
    "AskedPolicy",
    "acts_first",
    "asked_policies",
    "check_outputs",
    "check_picture",
    "check_writable",
    "dataset_writer",
    "files_of_model",
    "load_mdp",
    "load_model",
    "load_model_or_pomdp",
    "load_module",
    "print_data",
    "read_policy",
    "write_all",
]

TABLES = {"transitions": True, "rewards": True, "initial": True, "terminal": False}
"""The tables that a folder holds, and whether they must be there; named as in `FactoredMDP.from_tables`."""
TABLE_FILES = (".csv", ".parquet", ".pq")
DISCOUNT = "discount.txt"
FEATURES = "features"
"""The table of features and their values, in order; without it words are in alphabetical order."""
POLICY_FILES = (".mmpolicy", ".policyx")
STANDARD_OUTPUT = "-"


def load_model(name: str) -> MissMDP:
    """Return the model that a benchmark's name, an `.mmdp` file or `module:function` stands for.

    The module may be given by its path (`models.py:ward`), and what it names may also be a model itself.
    """
    mdp, model = load_mdp(name)
    if model is None:
        raise ModelError(
            f"{name}: this is {mdp!r}, which does not say how values go missing; "
            "`missmdp learn` learns that from a log and writes an .mmdp file"
        )
    return model


def load_model_or_pomdp(name: str) -> MissMDP | POMDP:
    """Return what `load_model` returns, or what is in a `.pomdp` or `.pomdpx` file: a POMDP, or a large miss-MDP."""
    from missmdp.interop.model_files import SUFFIXES, read_for_planning

    return read_for_planning(name) if Path(name).suffix.lower() in SUFFIXES else load_model(name)


def acts_first(name: str, model: MissMDP | POMDP) -> bool:
    """Return whether a miss-MDP came from a file that acts first, which miss-MDPs do not."""
    from missmdp.interop.model_files import SUFFIXES

    return isinstance(model, MissMDP) and Path(name).suffix.lower() in SUFFIXES


def load_mdp(name: str) -> tuple[FactoredMDP, MissMDP | None]:
    """Return the MDP that a name stands for, and the model with its missingness where the name gives that too.

    Names as in `load_model`, and besides functions that return a `FactoredMDP`, `.pomdpx` files that are miss-MDPs by
    features, and folders of tables: transitions, rewards, initial and optionally terminal (.csv or .parquet, see
    `FactoredMDP.from_tables`), optionally features (the columns feature and value: the values of each feature in
    order), and optionally discount.txt with the discount.
    """
    if not name.strip():
        raise ModelError("the model's name is empty; `missmdp benchmarks` lists the benchmarks")
    if name.lower().endswith(".mmdp"):
        return _both(MissMDP.load(name))
    if not is_benchmark(name):
        if Path(name).is_dir():
            return _from_folder(Path(name)), None
        if ":" in name:
            return _from_function(name)
        if Path(name).is_file():
            return _from_file(Path(name))
    try:
        return _both(load_benchmark(name))
    except ModelError as error:
        raise ModelError(f"{error} (or give an .mmdp file, a folder of tables, or module:function)") from None


def files_of_model(name: str) -> set[Path]:
    """Return the files that a model is read from, where its name is that of a file or folder."""
    path = Path(name)
    if not path.is_dir():
        return {path.resolve()} if path.is_file() else set()
    return {file.resolve() for file in path.iterdir() if file.stem in (*TABLES, FEATURES)}


def files_of_data(data: Iterable[str]) -> set[Path]:
    """Return the files that words for a log stand for."""
    found: set[Path] = set()
    for name in data:
        path = Path(name)
        inside = path.rglob("*") if path.is_dir() else map(Path, glob.glob(name, recursive=True))
        found |= {file.resolve() for file in (path, *inside)}
    return found


def is_log(name: str) -> bool:
    """Return whether a word stands for tables of a log rather than for a model."""
    from missmdp.data.tables.parts import CSV_SUFFIXES, PARQUET_SUFFIXES

    path, endings = Path(name), (*CSV_SUFFIXES, *PARQUET_SUFFIXES)
    if not path.is_dir():
        return name.lower().endswith(endings)
    parts = [file for file in path.rglob("*") if file.name.lower().endswith(endings)]
    return bool(parts) and not any(file.parent == path and file.stem in TABLES for file in parts)


def _from_file(path: Path) -> tuple[FactoredMDP, MissMDP | None]:
    """Return the miss-MDP in a `.pomdpx` file; raise where a file is no model with features."""
    from missmdp.interop.pomdpx.by_features import by_features
    from missmdp.interop.pomdpx.document import read_document

    if path.suffix.lower() != ".pomdpx":
        raise ModelError(_no_model(path))
    document = read_document(path)
    try:
        return _both(by_features(document))
    except MissMDPError as error:
        raise ModelError(f"{_no_model(path)} ({str(error).removeprefix(f'{path}:')})") from error


def _no_model(path: Path) -> str:
    """Return what is wrong with a file that is no model for this command."""
    from missmdp.interop.model_files import SUFFIXES

    if path.suffix.lower() in SUFFIXES:
        return f"{path}: its states have no features, which this command needs; solve, evaluate and export read it"
    return (
        f"{path}: not a model; give a benchmark's name, an .mmdp file, a folder of tables, or module:function"
    )


def _both(model: MissMDP) -> tuple[FactoredMDP, MissMDP]:
    return model.mdp, model


def _from_folder(folder: Path) -> FactoredMDP:
    tables = {table: _table(folder, table, needed=needed) for table, needed in TABLES.items()}
    options: dict[str, Any] = {}
    listed = _table(folder, FEATURES, needed=False)
    if (folder / DISCOUNT).exists():
        options["discount"] = _discount(folder / DISCOUNT)
    try:
        if listed is not None:
            options["features"] = _features(listed)
        return FactoredMDP.from_tables(**tables, **options)
    except (ModelError, FormatError) as error:
        kind = FormatError if isinstance(error, FormatError) else ModelError
        raise kind(f"{folder}: {error}") from error


def _table(folder: Path, table: str, *, needed: bool) -> Path | None:
    found = [folder / f"{table}{suffix}" for suffix in TABLE_FILES if (folder / f"{table}{suffix}").is_file()]
    if len(found) > 1:
        raise ModelError(f"{folder}: there is both {found[0].name} and {found[1].name}; keep one of them")
    if needed and not found:
        raise ModelError(
            f"{folder}: there is no {table}.csv or {table}.parquet; a model as a folder needs the tables "
            f"{', '.join(name for name, must in TABLES.items() if must)} "
            f"and may have {', '.join(name for name, must in TABLES.items() if not must)}, {FEATURES} and {DISCOUNT}"
        )
    return found[0] if found else None


def _features(path: Path) -> dict[str, list[Any]]:
    """Return the features and their values, in the order in which a table lists them."""
    table = Columns(path, FEATURES)
    found: dict[str, list[Any]] = {}
    for feature, value in zip(table["feature"], table["value"], strict=True):
        found.setdefault(str(feature), []).append(value)
    for name, values in found.items():
        # One column holds the values of all features, so numbers are words there as soon as one is a word.
        if all(isinstance(value, str) for value in values):
            found[name] = [*map(meaning(set(values)), values)]
    return found


def _discount(path: Path) -> float:
    text = read_text(path, most=1000)
    try:
        return float(text)
    except ValueError as error:
        raise FormatError(f"{path}: expected one number, such as 0.95 ({error})") from error


def _from_function(name: str) -> tuple[FactoredMDP, MissMDP | None]:
    module_name, _, attribute = name.rpartition(":")
    if not module_name or not attribute:
        raise ModelError(f"{name}: expected module:function, such as models.py:ward")
    module = load_module(module_name, name)
    found = getattr(module, attribute, None)
    if found is None:
        raise ModelError(f"{name}: {module_name} has no function {attribute!r}")
    if callable(found):
        try:
            found = found()
        except ModelError as error:
            raise ModelError(f"{name}: {error}") from error
        except (Exception, SystemExit) as error:
            raise ModelError(f"{name}: calling it raised {type(error).__name__}: {error}") from error
    if isinstance(found, MissMDP):
        return _both(found)
    if isinstance(found, FactoredMDP):
        return found, None
    raise ModelError(
        f"{name}: expected a MissMDP, a FactoredMDP or a function that returns one, got {type(found).__name__}"
    )


def load_module(module_name: str, name: str) -> ModuleType:
    """Return a module by its name, from here or installed, or by the path of its file."""
    path = Path(module_name)
    if path.suffix == ".py" and not path.is_file():
        raise ModelError(f"{name}: there is no file {module_name}")
    if path.suffix != ".py" and (path.name != module_name or module_name.startswith(".")):
        raise ModelError(f"{name}: the path of a module must end in .py, as in models.py:ward")
    folder, module = (path.parent, path.stem) if path.suffix == ".py" else (Path.cwd(), module_name)
    sys.path.insert(0, str(folder.resolve()))
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ModelError(
            f"{name}: there is no module {error.name!r} here or among the installed ones"
        ) from error
    except (Exception, SystemExit) as error:
        raise ModelError(f"{name}: importing {module_name} raised {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)


@dataclass(frozen=True)
class AskedPolicy:
    """A policy as it was asked for: one of the baselines, or a file."""

    name: str
    baseline: str | None = None
    path: Path | None = None


def asked_policies(words: Sequence[str]) -> list[AskedPolicy]:
    """Return what the words say.

    Raises
    ------
    click.UsageError
        If a word is neither a baseline nor a policy's file, or two policies have one name.
    """
    asked = [_asked_policy(word) for word in words]
    names = [policy.name for policy in asked]
    for name in names:
        if not is_text(name):
            raise click.UsageError(
                f"a policy's name must be UTF-8 text, not {name!r}; name it, as in NAME=FILE"
            )
    for i, policy in enumerate(asked):
        if policy.name in names[:i]:
            raise click.UsageError(
                f"two policies are called {policy.name!r}; name one of them, as in --policy "
                f"other={policy.path or policy.baseline}"
            )
    return asked


def _asked_policy(word: str) -> AskedPolicy:
    from missmdp.experiments.baselines import BASELINES

    if word in BASELINES:
        return AskedPolicy(word, baseline=word)
    name, equals, rest = word.partition("=")
    if equals and not Path(word).exists():
        if not name or not rest:
            raise click.UsageError(f"--policy {word}: expected NAME=FILE")
        if rest in BASELINES:
            return AskedPolicy(name, baseline=rest)
        return AskedPolicy(name, path=_policy_file(rest))
    return AskedPolicy(Path(word).stem, path=_policy_file(word))


def _policy_file(word: str) -> Path:
    from missmdp.experiments.baselines import BASELINES

    path = Path(word)
    if path.suffix.lower() not in POLICY_FILES:
        raise click.UsageError(
            f"there is no policy {word!r}; there are {', '.join(BASELINES)}, and files that end in "
            f"{' or '.join(POLICY_FILES)}"
        )
    if not path.is_file():
        raise click.UsageError(f"{path}: there is no such file")
    return path


def read_policy(path: Path, model: MissMDP | POMDP) -> MadePolicy:
    """Return the policy in a file.

    Raises
    ------
    FormatError
        If the file is damaged, or not for such a model.
    """
    from missmdp.experiments.baselines import MadePolicy
    from missmdp.interop.pomdpx.policyx import read_policyx
    from missmdp.plan.load import load_policy

    policy = read_policyx(path, model) if path.suffix.lower() == ".policyx" else load_policy(path)
    return MadePolicy(
        policy,
        kind="file",
        how=f"from {path}: {_policy_words(policy)}",
        settings={"file": str(path), "sha256": hashlib.sha256(read_bytes(path)).hexdigest()},
    )


def _policy_words(policy: AlphaVectorPolicy | FiniteController | MemoryPolicy | PPOPolicy) -> str:
    from missmdp.plan.alpha import AlphaVectorPolicy
    from missmdp.plan.factored.policy import MemoryPolicy
    from missmdp.plan.finite.controller import FiniteController

    if isinstance(policy, AlphaVectorPolicy):
        return f"{policy.n_vectors:,} α-vectors"
    if isinstance(policy, FiniteController):
        return f"a policy graph of {policy.n_nodes:,} nodes"
    if isinstance(policy, MemoryPolicy):
        return f"a memory of {policy.n_nodes:,} nodes for {len(policy.sites)} features"
    return f"a network, {'with' if policy.memory else 'without'} memory"


def check_writable(path: Path) -> None:
    """Raise `click.UsageError` unless a file can be written there, by trying; call it before long work.

    Folders that do not exist yet are made when something is written.
    """
    try:
        if path.is_dir():
            raise click.UsageError(f"{path} is a folder; give the name of a file")
        folder = next(parent for parent in path.absolute().parents if parent.exists())
        with removed_after(folder / f".{path.name}.{uuid.uuid4().hex}") as trial:
            trial.open("xb").close()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise click.UsageError(f"{path}: cannot be written ({reason})") from None


def check_picture(path: Path) -> None:
    """Raise unless a picture can be drawn there; call it before long work."""
    from missmdp.model.picture import check_picture_name

    check_picture_name(path)
    check_writable(path)


def check_outputs(outputs: Iterable[Path], *, model: str | None = None) -> None:
    """Raise `click.UsageError` unless files can be written, each is given once, and none is what a model is read from.

    Call it before long work.
    """
    read = set[Path]() if model is None else files_of_model(model)
    seen: set[Path] = set()
    for path in outputs:
        if path.resolve() in seen:
            raise click.UsageError(f"{path} is given twice; each result needs a file of its own")
        if path.resolve() in read:
            raise click.UsageError(f"{path}: this would overwrite the model")
        seen.add(path.resolve())
        check_writable(path)


def write_all(files: Mapping[Path, Callable[[Path], object]], *, quiet: bool = False) -> None:
    """Write all files that can be written, each by what is given for it, and raise if some cannot."""
    failed: list[str] = []
    for path, write in files.items():
        try:
            write(path)
        except (MissMDPError, OSError) as error:
            failed.append(what_is_wrong(error))
            continue
        if not quiet:
            echo(f"Written to {path}")
    if failed:
        raise click.ClickException("; ".join(failed))


def dataset_writer(output: str | None) -> Callable[[Dataset], None]:
    """Return what writes a dataset to a file by its ending, or prints it; call it before long work.

    Raises
    ------
    click.UsageError
        If there is no output, its ending says nothing, or it cannot be written.
    """
    if not output:
        raise click.UsageError("say where to write the log: -o log.parquet, -o log.csv, or -o - to print CSV")
    if output == STANDARD_OUTPUT:
        return _print_csv
    if Path(output).is_dir():
        raise click.UsageError(
            f"{output} is a folder; give a file in it, such as -o {Path(output) / 'log.parquet'}"
        )
    suffix = Path(output).suffix.lower()
    if suffix not in (".parquet", ".pq", ".csv"):
        raise click.UsageError(f"{output}: a log's name must end in .parquet or .csv")
    check_writable(Path(output))
    return lambda dataset: dataset.to_csv(output) if suffix == ".csv" else dataset.to_parquet(output)


def _print_csv(dataset: Dataset) -> None:
    with removed_after(Path(tempfile.mkdtemp(prefix="missmdp-"))) as folder:
        path = folder / "log.csv"
        dataset.to_csv(path)
        with path.open("rb") as file:
            print_data(file)


def print_data(lines: Iterable[bytes]) -> None:
    """Print data for other programs, exactly as it is; on a terminal, where people read it, it is only text."""
    for line in lines:
        if sys.stdout.isatty():
            echo(line.decode(errors="replace"), nl=False)
        else:
            sys.stdout.buffer.write(line)
