// The control socket: how streamctl, the daemon and scripts talk to a mounted streamfs.
//
// A Unix stream socket; its path is the value of the virtual xattr `user.streamfs.control` of the
// mount's root. One request a line, JSON; one answer a line, JSON. Every answer has "ok"; on
// failure "error" (a sentence) and "errno". Requests are {"op": NAME, ...}:
//   status    → the object streamctl status --json prints; in it "saved", what the last daemon told
//               by savings, with "told_ms" (since 1970), or null; and "model", the daemon's tables:
//               {"adopted" (one is in use), its "generation" and "kind", "looked_at" (the last
//               generation adopted or refused), "adoptions", "refused", "refusal" (why the last
//               refused one was), "telemetry_records"}
//   metrics   → {"schema", "version", "bounds_us": [...], "ops": [{"op", "sum_ns", "counts"}]}: how
//               long requests took since the mount. counts[i] of them took at most bounds_us[i] and
//               more than the bound before; the last count is what took longer than any bound
//   savings   {"report": {"version": 1, "one_in", "all": PERIOD, "month": PERIOD}}, from the
//               connection that is attached, where PERIOD is {"since_ms", "written_bytes",
//               "nand_off_bytes", "nand_placed_bytes", "nand_oracle_bytes", "saved_low_bytes",
//               "saved_bytes", "saved_high_bytes"}: what the SSD programmed for what was written
//               since then, as reckoned without streams, as placed, and with all deaths known; what
//               the second saves of the first, with 95 % limits (negative: streams cost). one_in:
//               of so many chunks one is followed. "month": of the running one (UTC). Beside
//               these "history", optional: at most 256 moments, [ms, written_bytes, nand_off_bytes,
//               nand_placed_bytes, nand_oracle_bytes, the device's own written_bytes and nand_bytes
//               (0: not told)]. Without "report", from anyone → {"saved", "history"} as told last
//   streams   → {"streams": [{"vstream", "source", "name", "comm", "ext", "dir", "lifetime_bytes",
//               "lifetime_low_bytes", "lifetime_high_bytes" (95 % confidence, as if pages died one
//               by one), "expected_bytes" (what a hint or a profile says of it, which counts until
//               it is measured; 0: nothing), "lifetime_ms", "written_bytes", "live_bytes",
//               "dead_bytes", "pstream", "pstream_gc_share" (of all copies, those into its pStream;
//               null: not told)}]}. "name", "comm", "ext" and "dir" are "" unless root, the user
//               who mounted or the user classifierd asks, but for names that are built in. Who
//               passes the answer on asks with {"names": "built-in"}, and gets no others either
//   block     {"block": N}, 4 KiB of DATA each → {"block", "known": false}, or with "known": true
//               {"vstream", "pstream" (of a new write of that vStream, now),
//               "written_clock_bytes", "age_bytes"}. Known is what was written since the mount and
//               lives, to the 64 KiB around it. ERANGE beyond DATA.
//   attach    → {"telemetry_bytes", "model_bytes", "pstream_count", "capacity_blocks", "uuid",
//               "device": {"gc_mode" ("same", "own", "shared"), "spare" (physical ÷ capacity − 1),
//               "erase_unit_blocks"}} with two file descriptors (SCM_RIGHTS): the telemetry ring
//               and the model table. Of the device each is null where it does not tell. One daemon
//               at a time: a second attach is refused with EBUSY until the first hangs up.
//   sync      → waits for an epoch that covers everything written before
//   record    {"path": FILE} or {"stop": true} → starts or stops the trace recorder
//   grow      {"meta_size": BYTES, "dry_run": true}, both optional → {"before": SIZES,
//               "after": SIZES, "data_fixed", "dry_run"}, where SIZES are
//               {"data_bytes", "meta_bytes", "inodes_possible"}
//   maintain  {"ms": N}, optional → {"finished", "copied_bytes", "erases", "device"}: frees, trims
//               and lets the device work for so long (at most 5 s), giving way to programs
//   prepare_poweroff → as maintain, whatever programs do, after all that was written is durable
//   trim      {"from": BLOCK, "ms": N}, both optional → {"bytes", "next"}: trims free space; "next"
//               is the block where to go on, or null
//   shutdown  {"mode": "default", "logflush" or "nologflush"} → waits for a sync, for the metadata
//             log alone, or for nothing; then every request of the mount, and every later one of
//             these but those that anyone may ask, fails with EIO until it is unmounted, and
//             nothing is written
//   scrub     {"action": "start"} or {"action": "stop"}; without one, of the last:
//               {"state": "never", "running", "stopped" or "done", "inodes", "inodes_in_all",
//               "bytes", "damaged", "findings": [{"inode", "what"}]}
// Anyone may ask for status, metrics, streams, block, savings and scrub without an action; the rest
// is for root and the user who mounted, attach for the user classifierd too.
// Limits: a request is at most 64 KiB; connections are 48, of one user 8, of all users but the
// daemon's 16, of who mounted 16 and of root as many as are left: who is turned away is answered
// with EUSERS before having asked, and hung up on.
#pragma once

namespace streamfs::wire {
inline constexpr const char* kControlXattr = "user.streamfs.control";
inline constexpr const char* kVStreamXattr = "user.streamfs.vstream";
// Names that start so mean something: one that means nothing is refused, not stored.
inline constexpr const char* kReservedXattrs = "user.streamfs.";
// "schema" of every object that a program prints with --json: raised when a field goes or changes
// its meaning, not when one is added.
inline constexpr int kJsonSchema = 1;
inline constexpr unsigned kControlRequestMax = 64 * 1024;
}  // namespace streamfs::wire
