"""Parquet and Feather files written by pyarrow and pandas with many options."""

import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather
from pyarrow import parquet as pq

import ladderboard as lb
from ladderboard.files import Roster, read_predictions

N = 5000
ORDER = np.random.default_rng(0).permutation(N)
IDS = [f"id_{number}" for number in range(N)]
FRAME = pd.DataFrame({"id": [IDS[number] for number in ORDER], "prediction": ORDER % 7})
ROSTER = Roster.of(IDS, kind="number")
EXPECTED = [number % 7 for number in range(N)]


def check(data):
    assert read_predictions(data, ROSTER, lb.loss("zero_one")).tolist() == EXPECTED


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("packer", ["none", "snappy", "gzip", "zstd", "brotli", "lz4"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_parquet_of_pyarrow(version, packer, dictionary):
    out = io.BytesIO()
    pq.write_table(
        pa.Table.from_pandas(FRAME),
        out,
        data_page_version=version,
        compression=packer,
        use_dictionary=dictionary,
        row_group_size=1500,
        data_page_size=1000,
        write_page_index=dictionary,
        write_page_checksum=not dictionary,
    )
    check(out.getvalue())


@pytest.mark.parametrize("packer", ["uncompressed", "lz4", "zstd"])
@pytest.mark.parametrize("categories", [False, True])
def test_feather_of_pyarrow(packer, categories):
    out = io.BytesIO()
    frame = FRAME.astype({"id": "category"}) if categories else FRAME
    feather.write_feather(pa.Table.from_pandas(frame), out, compression=packer, chunksize=700)
    check(out.getvalue())


def test_files_of_pandas(tmp_path):
    FRAME.to_parquet(tmp_path / "a.parquet")
    FRAME.set_index("id").to_parquet(tmp_path / "b.parquet")
    FRAME.to_feather(tmp_path / "c.feather")
    FRAME.to_csv(tmp_path / "d.csv")
    FRAME.to_csv(tmp_path / "e.csv.gz", index=False)
    FRAME.to_csv(tmp_path / "f.zip", index=False)
    FRAME.to_json(tmp_path / "g.jsonl", orient="records", lines=True)
    FRAME.sample(frac=1, random_state=1).to_parquet(tmp_path / "h.parquet")
    for path in sorted(tmp_path.iterdir()):
        check(path)
