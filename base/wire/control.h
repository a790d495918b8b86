// The protocol of the control socket, on which streamctl, the learning daemon and scripts talk to
// the mount daemon.
//
// It is a Unix stream socket; its path is the value of the virtual xattr `user.streamfs.control` of
// the mount's root. Requests and answers are JSON objects, one a line. Every answer has the boolean
// "ok"; if it is false, also "error" (a sentence) and "errno". Requests are {"op": NAME, ...}; an
// arrow leads to the answer's other fields, or to a description of the request:
//   status    → the object that streamctl status --json prints. Its "saved" is the last report of
//               savings with "told_ms" (since 1970), or null. Its "model" describes the learning
//               daemon's models: {"adopted" (one is in use), its "generation" and "kind",
//               "looked_at" (the last generation adopted or refused), "adoptions", "refused",
//               "refusal" (the reason of the last refusal), "telemetry_records"}
//   metrics   → {"schema", "version", "bounds_us": [...], "ops": [{"op", "sum_ns", "counts",
//               "buckets"}], "sizes": SIZES}: latencies and sizes of requests since the mount.
//               counts[i] requests took at most bounds_us[i] and more than the bound before it; the
//               last count is of requests above all bounds. "buckets" has the same requests with
//               two significant digits: each [above_ns, up_to_ns, count] that is not empty, in
//               ascending order (base/log_histogram.h). SIZES are [{"side", "op", "sum_bytes",
//               "buckets"}]: the side is "kernel" (READ and WRITE requests) or "device" (requests
//               to DATA), the op "read" or "write", and the buckets count bytes
//   savings   {"report": {"version": 1, "one_in", "all": PERIOD, "month": PERIOD}}, from the
//               connection that is attached, where PERIOD is {"since_ms", "written_bytes",
//               "nand_off_bytes", "nand_placed_bytes", "nand_oracle_bytes", "saved_low_bytes",
//               "saved_bytes", "saved_high_bytes"}: the bytes written since then, and the estimated
//               bytes that the SSD programs for them without streams (off), as placed, and with all
//               deaths known (oracle). saved: off minus placed, with 95 % limits (negative: streams
//               cost). one_in: one in so many chunks is sampled. "month": the current one (UTC).
//               The optional "history" is at most 256 moments, [ms, written_bytes, nand_off_bytes,
//               nand_placed_bytes, nand_oracle_bytes, the device's own written_bytes and nand_bytes
//               (0: unknown)]. Without "report", from anyone → the last {"saved", "history"}
//   streams   → {"streams": [{"vstream", "generation" (of the number), "source", "name", "comm",
//               "ext", "dir", "lifetime_bytes",
//               "lifetime_low_bytes", "lifetime_high_bytes" (95 % confidence, as if pages died one
//               by one), "expected_bytes" (the lifetime by a hint or a profile, used until one is
//               measured; 0: none), "lifetime_ms", "written_bytes", "live_bytes", "dead_bytes",
//               "pstream", "pstream_gc_share" (the share of the bytes copied by garbage collection
//               that went to its pStream; null: unknown, or nothing was copied)}]}. "comm", "ext",
//               "dir" and names that are not built in are "" unless root, the user who mounted or
//               the user classifierd asks. With {"names": "built-in"} nobody gets them: for
//               programs that pass the answer on
//   block     {"block": N}, 4 KiB of DATA each → {"block", "known": false}, or with "known": true
//               {"vstream", "pstream" (where an early page of a long write of that vStream goes by
//               the table; a logistic model places each page by its own features),
//               "written_clock_bytes", "age_bytes"}. A block is known if it is live and was written
//               since the mount; its values are shared by 64 KiB. Errors: ERANGE beyond DATA.
//   chunks    → {"chunk_bytes", "chunks": [how many chunks of DATA have class 0, 1, …],
//               "chunks_a_cell", "map"}: a digit for each cell of neighbouring chunks, 4,096 at
//               most, the class that most of them have (base/wire/model_table.h)
//   attach    → {"telemetry_bytes", "model_bytes", "pstream_count", "capacity_blocks", "uuid",
//               "device": {"gc_mode" ("same", "own", "shared"), "victim" ("greedy",
//               "cost-benefit"), "spare" (physical ÷ capacity − 1), "erase_unit_blocks"}} with two
//               file descriptors (SCM_RIGHTS): the telemetry rings and the placement model. Each
//               field of "device" is null if the device does not tell. Errors: EBUSY until the
//               connection that attached first is closed.
//   sync      → answers once everything that was written before the request is durable
//   record    {"path": FILE (absolute)} or {"stop": true} → starts or stops the trace recorder.
//               Errors: EINVAL without either, those of the file
//   grow      {"meta_size": BYTES, "dry_run": true}, both optional → {"before": SIZES,
//               "after": SIZES, "data_fixed", "dry_run"}, where SIZES are
//               {"data_bytes", "meta_bytes", "inodes_possible"}
//   maintain  {"ms": N}, optional → {"finished", "copied_bytes", "erases", "device"}: frees, trims
//               and lets the device work for N ms (at most and by default 5 s), yielding to
//               programs
//   prepare_poweroff → makes all writes durable, then as maintain, without yielding to programs
//   trim      {"from": BLOCK, "ms": N}, both optional → {"bytes", "next"}: trims free space; "next"
//               is the block at which to continue, or null
//   shutdown  {"mode": "default", "logflush" or "nologflush"} → waits for a sync, for the metadata
//             log alone, or for nothing. Then nothing is written, and every request of the mount
//             fails with EIO until it is unmounted, as do requests here other than shutdown,
//             status, metrics, streams, block, chunks and savings
//   scrub     {"action": "start"} or {"action": "stop"}. Without an action, or with "status", the
//               state of the last: {"state": "never", "running", "stopped" or "done", "inodes",
//               "inodes_in_all", "bytes", "damaged", "findings": [{"inode", "what"}]}
// Anyone may ask for status, metrics, streams, block, chunks, savings and the state of a scrub. The
// other requests are for root and the user who mounted; attach also for the user classifierd.
// Limits: a request is at most 64 KiB. There are 48 connections. Root may hold all, the user who
// mounted 16, and the user classifierd and each other user 8, but those other users together 16. A
// connection beyond a limit is answered with EUSERS at once and closed.
#pragma once

namespace streamfs::wire {
inline constexpr const char* kControlXattr = "user.streamfs.control";
inline constexpr const char* kVStreamXattr = "user.streamfs.vstream";
// Prefix of names that streamfs gives a meaning; an unknown name with it is refused, not stored.
inline constexpr const char* kReservedXattrs = "user.streamfs.";
// "schema" of every object that a program prints with --json. It is raised when a field is removed
// or changes its meaning, not when one is added.
inline constexpr int kJsonSchema = 1;
inline constexpr unsigned kControlRequestMax = 64 * 1024;
}  // namespace streamfs::wire
