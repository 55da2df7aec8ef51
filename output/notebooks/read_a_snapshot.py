# %% [markdown]
# # Reading a snapshot
#
# Run from the directory that holds `output/`, as a script or cell by cell.

# %%
import polars as pl

pl.Config.set_tbl_rows(40).set_tbl_hide_dataframe_shape(True)

offers = pl.read_parquet("output/offers/20*/*.parquet")
coverage = pl.read_parquet("output/coverage/20*/*.parquet")
latest = offers.filter(pl.col("snapshot_id") == pl.col("snapshot_id").max())
print(f"{offers['snapshot_id'].n_unique()} nights, {offers.height} offers; the latest is {latest['snapshot_id'][0]}")

# %% [markdown]
# What the latest night covers. Without `complete`, an absent offer says nothing.

# %%
tonight = coverage.filter(pl.col("snapshot_id") == latest["snapshot_id"][0])
print(tonight.group_by("provider", "status").agg(pl.len().alias("scopes"), pl.col("rows").sum()).sort("provider", "status"))

# %% [markdown]
# Cheapest ladder per GPU family: whole GPUs, on demand, Linux; the cheapest offer of each provider.

# %%
comparable = (
    pl.col("pricing_model").eq("on_demand")
    & pl.col("os").eq("linux")
    & pl.col("is_fractional").not_()
    & pl.col("price_usd_per_gpu_hour").is_not_null()
)
ladder = (
    latest.filter(comparable)
    .with_columns(family=pl.col("gpu_model").str.extract(r"^(\S+)"))
    .sort("price_usd_per_gpu_hour", "offer_id")
    .group_by("family", "provider", maintain_order=True)
    .first()
    .with_columns(rung=pl.col("price_usd_per_gpu_hour").rank("ordinal").over("family"))
    .sort("family", "rung")
)
print(ladder.select("family", "rung", "provider", "gpu_model", "gpu_count", "price_usd_per_gpu_hour"))

# %% [markdown]
# Cheapest H100 per provider, night by night. An empty place is a night without a price, not a price of zero.

# %%
nights = (
    offers.filter(comparable & pl.col("gpu_model").str.starts_with("H100"))
    .group_by("snapshot_id", "provider")
    .agg(pl.col("price_usd_per_gpu_hour").min())
    .sort("snapshot_id", "provider")
    .pivot(on="provider", index="snapshot_id", values="price_usd_per_gpu_hour")
    .sort("snapshot_id")
)
print(nights)
