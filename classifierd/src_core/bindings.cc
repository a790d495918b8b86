// The Python face of _core; its types are in src/classifierd/_core.pyi.
// Records cross as contiguous buffers of 40-byte items, everything else as plain numpy arrays.
// Exceptions stop here: std::runtime_error and std::invalid_argument become Python's.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "base/checksum.h"
#include "base/or_throw.h"
#include "base/wire/magic.h"
#include "base/wire/model_table.h"
#include "base/wire/record_arrays.h"
#include "base/wire/telemetry.h"
#include "classifierd/src_core/backoff.h"
#include "classifierd/src_core/chunk_counter.h"
#include "classifierd/src_core/life_table.h"
#include "classifierd/src_core/model_writer.h"
#include "classifierd/src_core/own_places.h"
#include "classifierd/src_core/page_trace.h"
#include "classifierd/src_core/predictor.h"
#include "classifierd/src_core/savings_shadow.h"
#include "classifierd/src_core/shadow.h"
#include "classifierd/src_core/telemetry_reader.h"
#include "classifierd/src_core/trace_records.h"
#include "ssd/geometry.h"
#include "trace/trace.h"

namespace py = pybind11;

namespace streamfs::classifier {
namespace {

using wire::Array;
using wire::bytes_of;
using wire::records_of;
using wire::span_of;
using wire::TelemetryRecord;

// u64[parts, 6], in the order of the fields.
py::array_t<uint64_t> savings_counts(const SavingsShadow& shadow) {
  const std::vector<SavingsShadow::Counts> counts = shadow.counts();
  static_assert(sizeof(SavingsShadow::Counts) == 6 * sizeof(uint64_t));
  py::array_t<uint64_t> out({static_cast<py::ssize_t>(counts.size()), py::ssize_t{6}});
  std::memcpy(out.mutable_data(), counts.data(), counts.size() * sizeof(counts[0]));
  return out;
}

void bind_savings(py::module_& m) {
  py::class_<SavingsShadow>(m, "SavingsShadow")
      .def(py::init([](uint64_t capacity_pages, uint32_t pstreams, double spare,
                       uint32_t block_pages, const std::string& gc_mode, uint32_t one_in,
                       uint32_t parts, const std::string& victim) {
             return std::make_unique<SavingsShadow>(SavingsShadow::Settings{
                 capacity_pages, pstreams, spare, block_pages, or_throw(ssd::gc_mode_of(gc_mode)),
                 or_throw(ssd::victim_of(victim)), one_in, parts});
           }),
           py::arg("capacity_pages"), py::arg("pstreams"), py::arg("spare"), py::arg("block_pages"),
           py::arg("gc_mode"), py::arg("one_in"), py::arg("parts"), py::arg("victim") = "greedy")
      .def(
          "feed",
          [](SavingsShadow& shadow, const py::array& records) {
            const auto span = records_of(records);
            const py::gil_scoped_release release;
            shadow.feed(span);
          },
          py::arg("records"))
      .def("fill", &SavingsShadow::fill, py::arg("pages"), py::arg("first") = 0)
      .def("release", &SavingsShadow::release, py::arg("stream"))
      .def("counts", &savings_counts)
      .def_property_readonly("written", &SavingsShadow::written)
      .def_property_readonly("stride", &SavingsShadow::stride);
}

// (cells u32[n], volume f64[n], deaths f64[n, 26], entered f64[n, 26])
py::tuple export_cells(const LifeTable& table) {
  const auto cells = table.cells();
  const auto n = static_cast<py::ssize_t>(cells.size());
  py::array_t<uint32_t> ids(n);
  py::array_t<double> volume(n);
  py::array_t<double> deaths({n, py::ssize_t{kAgeBins}});
  py::array_t<double> entered({n, py::ssize_t{kAgeBins}});
  for (py::ssize_t i = 0; i < n; ++i) {
    const CellLife& life = cells[static_cast<size_t>(i)];
    ids.mutable_at(i) = life.cell;
    volume.mutable_at(i) = life.volume_pages;
    std::ranges::copy(life.known.deaths, deaths.mutable_data(i, 0));
    std::ranges::copy(life.known.entered, entered.mutable_data(i, 0));
  }
  return py::make_tuple(ids, volume, deaths, entered);
}

// Deaths' events of each cell, f64[n], in the order of cells().
py::array_t<double> events_of(const LifeTable& table) {
  const auto cells = table.cells();
  py::array_t<double> out(static_cast<py::ssize_t>(cells.size()));
  std::ranges::transform(cells, out.mutable_data(), &CellLife::events);
  return out;
}

bool import_cells(LifeTable& table, const Array<uint32_t>& ids, const Array<double>& volume,
                  const Array<double>& deaths, const Array<double>& entered) {
  const py::ssize_t n = ids.size();
  const auto is_table = [n](const Array<double>& array) {
    return array.ndim() == 2 && array.shape(0) == n && array.shape(1) == kAgeBins;
  };
  if (ids.ndim() != 1 || volume.ndim() != 1 || volume.size() != n) return false;
  if (!is_table(deaths) || !is_table(entered)) return false;
  std::vector<CellLife> cells(static_cast<size_t>(n));
  for (py::ssize_t i = 0; i < n; ++i) {
    CellLife& life = cells[static_cast<size_t>(i)];
    life.cell = ids.at(i);
    life.volume_pages = volume.at(i);
    std::copy_n(deaths.data(i, 0), kAgeBins, life.known.deaths.begin());
    std::copy_n(entered.data(i, 0), kAgeBins, life.known.entered.begin());
  }
  return table.restore(cells);
}

void fit_backoff(Backoff& backoff, const LifeTable& table, const Array<uint32_t>& contexts) {
  if (contexts.ndim() != 2 || contexts.shape(1) != 3) {
    throw std::invalid_argument("contexts: one row of (comm, extension, directory) a vStream");
  }
  std::vector<VStreamContext> rows(static_cast<size_t>(contexts.shape(0)));
  for (py::ssize_t i = 0; i < contexts.shape(0); ++i) {
    rows[static_cast<size_t>(i)] = {contexts.at(i, 0), contexts.at(i, 1), contexts.at(i, 2)};
  }
  backoff.fit(table.cells(), std::move(rows));
}

// vStreams u16[n] → (mean log2 life f64[n, SHAPES], evidence f64[n, SHAPES])
py::tuple predict(const Backoff& backoff, const Array<uint16_t>& vstreams) {
  const py::ssize_t n = vstreams.size();
  py::array_t<double> mean({n, py::ssize_t{wire::kShapes}});
  py::array_t<double> evidence({n, py::ssize_t{wire::kShapes}});
  for (py::ssize_t i = 0; i < n; ++i) {
    for (uint32_t shape = 0; shape < wire::kShapes; ++shape) {
      const Estimate estimate = backoff.predict(vstreams.data()[i], shape);
      mean.mutable_at(i, shape) = estimate.mean_log2;
      evidence.mutable_at(i, shape) = estimate.evidence;
    }
  }
  return py::make_tuple(mean, evidence);
}

// (chunk u64[n], what CHUNK_FEATURES names f32[n, 5]); of a million it is too much to be had twice.
py::tuple view_chunks(const ChunkCounter& counter) {
  auto views = std::make_unique<ChunkViews>(counter.view());
  const auto n = static_cast<py::ssize_t>(views->chunks.size());
  const uint64_t* const chunks = views->chunks.data();
  const auto* const features = reinterpret_cast<const float*>(views->features.data());
  const py::capsule owner(views.release(), [](void* all) {
    std::default_delete<ChunkViews>()(static_cast<ChunkViews*>(all));
  });
  const std::array<py::ssize_t, 2> shape = {n, py::ssize_t{kChunkFeatures.size()}};
  return py::make_tuple(py::array_t<uint64_t>(n, chunks, owner),
                        py::array_t<float>(shape, features, owner));
}

learning::Table table_of(const Array<uint16_t>& row_of, const Array<uint8_t>& rows) {
  return {{row_of.data(), static_cast<size_t>(row_of.size())}, span_of(rows)};
}

// As Predictor::Known: (row of each vStream, expectations, classes of chunks).
using KnownArrays = std::tuple<Array<uint16_t>, Array<uint8_t>, Array<uint8_t>>;
Predictor::Known known_of(const KnownArrays& known) {
  const auto& [row_of, rows, chunks] = known;
  return {table_of(row_of, rows), {span_of(chunks)}};
}

// A row of classes for each number of them asked for, a column for each page written.
py::array_t<uint8_t> feed_model(Predictor& model, const py::array& records,
                                const std::optional<KnownArrays>& known) {
  const std::vector<uint8_t> classes =
      model.feed(records_of(records), known ? known_of(*known) : Predictor::Known{});
  const auto rows = static_cast<py::ssize_t>(model.cuts());
  const auto columns = static_cast<py::ssize_t>(classes.size()) / rows;
  py::array_t<uint8_t> out({rows, columns});
  for (py::ssize_t page = 0; page < columns; ++page) {
    for (py::ssize_t row = 0; row < rows; ++row) {
      out.mutable_at(row, page) = classes[static_cast<size_t>(page * rows + row)];
    }
  }
  return out;
}

// The records of a trace file as a structured array with the fields of trace::TraceRecord.
// Raises OSError if the file cannot be opened, ValueError if it is no trace.
py::array_t<trace::TraceRecord> read_trace(const std::string& path) {
  const auto found = [&] {
    const py::gil_scoped_release release;
    return trace_records(path);
  }();
  if (!found.ok() && found.error().code == EINVAL) {
    throw std::invalid_argument(found.error().context);
  }
  if (!found.ok()) {
    errno = found.error().code;
    PyErr_SetFromErrnoWithFilename(PyExc_OSError, path.c_str());
    throw py::error_already_set();
  }
  return py::array_t<trace::TraceRecord>(static_cast<py::ssize_t>(found->size()), found->data());
}

py::array_t<uint64_t> lifetimes_of(const PageTrace& trace) {
  const auto lifetimes = trace.lifetimes();
  return py::array_t<uint64_t>(static_cast<py::ssize_t>(lifetimes.size()), lifetimes.data());
}

void bind_wire(py::module_& m) {
  m.attr("SHAPES") = wire::kShapes;
  m.attr("CHUNK_CLASSES") = wire::kChunkClasses;
  m.attr("CHUNKS") = wire::kModelChunks;
  m.attr("TABLE_ROWS") = wire::kModelTableRows;
  m.attr("VSTREAMS") = wire::kModelVStreams;
  m.attr("MODEL_BYTES") = wire::kModelBytes;
  m.attr("MODEL_BUFFER_BYTES") = sizeof(wire::ModelBuffer);
  m.attr("MODEL_MAGIC") = wire::kModelMagic;
  m.attr("MODEL_VERSION") = wire::kModelVersion;
  m.attr("TELEMETRY_MAGIC") = wire::kTelemetryMagic;
  m.attr("TELEMETRY_VERSION") = wire::kTelemetryVersion;
  m.attr("AGE_BINS") = kAgeBins;
  m.attr("RESERVE_BLOCKS") = ssd::kReserveBlocks;
  m.attr("FEATURES") =
      py::dict(py::arg("comm") = uint32_t{kComm}, py::arg("ext") = uint32_t{kExtension},
               py::arg("dir") = uint32_t{kDirectory}, py::arg("vstream") = uint32_t{kVStream},
               py::arg("overwrite") = uint32_t{kOverwrite}, py::arg("age") = uint32_t{kAge},
               py::arg("end") = uint32_t{kEnd}, py::arg("shape") = uint32_t{kShape},
               py::arg("chunk") = uint32_t{kChunk});
  m.attr("AGE_OLD") = uint32_t{wire::kAgeOld};
  m.def("shape_of", &wire::shape_of, py::arg("request_pages"), py::arg("offset"), py::arg("age"),
        py::arg("chunk_class") = uint8_t{0});
  m.def("crc32c", [](const py::bytes& data) {
    const std::string_view view = data;
    return crc32c(std::as_bytes(std::span(view.data(), view.size())));
  });
}

void bind_seams(py::module_& m) {
  py::class_<TelemetryReader>(m, "TelemetryReader")
      .def(py::init<int>(), py::arg("fd"))
      .def(
          "read", [](TelemetryReader& reader, size_t max) { return bytes_of(reader.read(max)); },
          py::arg("records_max"))
      .def_property_readonly("lost", &TelemetryReader::lost)
      .def_property_readonly("rejected", &TelemetryReader::rejected)
      .def_property_readonly("dropped", &TelemetryReader::dropped)
      .def_property_readonly("capacity_blocks", &TelemetryReader::capacity_blocks)
      .def_property_readonly("clock_pages", &TelemetryReader::clock_pages)
      .def_property_readonly("sealed", &TelemetryReader::sealed)
      .def_property_readonly("uuid", [](const TelemetryReader& reader) {
        const auto uuid = reader.uuid();
        return py::bytes(reinterpret_cast<const char*>(uuid.data()), uuid.size());
      });
  // The predictor, which of its cuts, and the pStream of each class.
  using Logistic = std::tuple<const Predictor*, size_t, Array<uint8_t>>;
  py::class_<ModelWriter>(m, "ModelWriter")
      .def(py::init<int>(), py::arg("fd"))
      .def(
          "prepare",
          [](ModelWriter& writer, const Array<uint8_t>& pstreams, const KnownArrays& known,
             uint32_t pstream_count, uint64_t clock, const std::string& kind,
             const std::optional<Logistic>& logistic) {
            std::optional<ServingLogistic> serves;
            if (logistic) {
              const auto& [model, cut, of_class] = *logistic;
              serves.emplace(*model, cut, span_of(of_class));
            }
            writer.prepare({span_of(pstreams), known_of(known)}, pstream_count, clock, kind,
                           serves);
          },
          py::arg("pstreams"), py::arg("known"), py::arg("pstream_count"), py::arg("clock_pages"),
          py::arg("kind") = "", py::arg("logistic") = py::none())
      .def(
          "place",
          [](const ModelWriter& writer, const py::array& records) {
            const std::vector<uint8_t> placed = writer.place(records_of(records));
            return py::array_t<uint8_t>(static_cast<py::ssize_t>(placed.size()), placed.data());
          },
          py::arg("records"))
      .def("publish", &ModelWriter::publish)
      .def(
          "stored",
          [](const ModelWriter& writer, const Array<uint16_t>& uses) {
            const auto stored =
                writer.stored(std::span(uses.data(), static_cast<size_t>(uses.size())));
            return py::bytes(reinterpret_cast<const char*>(stored.get()), sizeof(*stored));
          },
          py::arg("uses"))
      .def("heartbeat", &ModelWriter::heartbeat, py::arg("now_ms"))
      .def_property_readonly("generation", &ModelWriter::generation)
      .def_property_readonly("uuid", [](const ModelWriter& writer) {
        const auto uuid = writer.uuid();
        return py::bytes(reinterpret_cast<const char*>(uuid.data()), uuid.size());
      });
}

void bind_life_tables(py::module_& m) {
  py::class_<LifeTable>(m, "LifeTable")
      .def(py::init<uint64_t, uint32_t, double, size_t>(), py::arg("capacity_blocks"),
           py::arg("epoch_pages") = 65536, py::arg("decay") = 0.7,
           py::arg("groups_max") = BirthMap::kGroupsMax)
      .def(
          "feed",
          [](LifeTable& table, const py::array& records, const Array<uint8_t>& chunks) {
            return table.feed(records_of(records), {span_of(chunks)});
          },
          py::arg("records"), py::arg("chunks") = Array<uint8_t>(0))
      .def("end_epoch", &LifeTable::end_epoch)
      .def("forget_births", &LifeTable::forget_births)
      .def("cells", &export_cells)
      .def("events", &events_of)
      .def("restore", &import_cells, py::arg("cells"), py::arg("volume"), py::arg("deaths"),
           py::arg("entered"))
      .def_property_readonly("epoch_due", &LifeTable::epoch_due)
      .def_property_readonly("clock_pages", &LifeTable::clock_pages)
      .def_property_readonly("device_clock_pages", &LifeTable::device_clock_pages)
      .def_property_readonly("epochs", &LifeTable::epochs)
      .def_property_readonly("epoch_pages", &LifeTable::epoch_pages)
      .def_property_readonly("rejected", &LifeTable::rejected)
      .def_property_readonly("live_pages", &LifeTable::live_pages)
      .def_property_readonly("clock_jumps", &LifeTable::clock_jumps)
      .def_property_readonly("one_in", &LifeTable::one_in)
      .def_property_readonly("deaths", &LifeTable::deaths);
  py::class_<Backoff>(m, "Backoff")
      .def(py::init<std::vector<uint32_t>, double, double, double>(), py::arg("levels"),
           py::arg("kappa") = 512.0, py::arg("deadband_log2") = 0.0, py::arg("prior_log2") = 16.0)
      .def("fit", &fit_backoff, py::arg("table"), py::arg("contexts"))
      .def("predict", &predict, py::arg("vstreams"));
}

void bind_predictor(py::module_& m) {
  py::class_<Predictor>(m, "Predictor")
      .def(py::init<uint64_t, uint64_t, std::vector<uint32_t>>(), py::arg("device_pages"),
           py::arg("live_pages"), py::arg("classes"))
      .def("feed", &feed_model, py::arg("records"), py::arg("known") = py::none())
      .def(
          "classes_of",
          [](const Predictor& model, const py::array& records, const KnownArrays& known,
             size_t cut) {
            const auto classes = model.classes_of(records_of(records), known_of(known), cut);
            return py::array_t<uint8_t>(static_cast<py::ssize_t>(classes.size()), classes.data());
          },
          py::arg("records"), py::arg("known"), py::arg("cut"))
      .def("end_epoch", &Predictor::end_epoch)
      .def_property_readonly("weights",
                             [](const Predictor& model) {
                               const auto rows = model.model().weights().rows();
                               return py::array_t<int8_t>({rows.size(), rows[0].size()},
                                                          rows[0].data());
                             })
      .def_property_readonly("gradients",
                             [](const Predictor& model) {
                               const std::vector<int8_t> all = model.gradients();
                               return py::array_t<int8_t>(static_cast<py::ssize_t>(all.size()),
                                                          all.data());
                             })
      .def(
          "restore",
          [](Predictor& model, const Array<int8_t>& weights, const Array<int8_t>& gradients,
             const std::vector<std::vector<float>>& edges) {
            model.restore({weights.data(), static_cast<size_t>(weights.size())},
                          {gradients.data(), static_cast<size_t>(gradients.size())}, edges);
          },
          py::arg("weights"), py::arg("gradients"), py::arg("edges"))
      .def_property_readonly("clock", &Predictor::clock)
      .def_property_readonly("landmarks", &Predictor::landmarks)
      .def("edges", &Predictor::edges, py::arg("cut"));
}

void bind_chunks(py::module_& m) {
  m.attr("CHUNK_FEATURES") = py::tuple(py::cast(kChunkFeatures));
  py::class_<ChunkCounter>(m, "ChunkCounter")
      .def(py::init<double, size_t>(), py::arg("half_life_pages"), py::arg("chunks_max") = 1U << 20)
      .def(
          "feed",
          [](ChunkCounter& counter, const py::array& records) {
            counter.feed(records_of(records));
          },
          py::arg("records"))
      .def("view", &view_chunks)
      .def("__len__", &ChunkCounter::size);
}

void bind_replay(py::module_& m) {
  PYBIND11_NUMPY_DTYPE(trace::TraceRecord, ts_us, offset, length, context, request, vstream,
                       pstream, op, file_place);
  m.def("read_trace", &read_trace, py::arg("path"));
  m.def(
      "as_telemetry",
      [](const py::array& records) { return bytes_of(as_telemetry(records_of(records))); },
      py::arg("records"));
  m.def(
      "tags",
      [](const py::array& records, const Array<uint16_t>& row_of, const Array<uint8_t>& rows,
         const Array<uint8_t>& chunks) {
        const auto out = tags(records_of(records), table_of(row_of, rows), {span_of(chunks)});
        return py::array_t<uint8_t>(static_cast<py::ssize_t>(out.size()), out.data());
      },
      py::arg("records"), py::arg("row_of"), py::arg("rows"),
      py::arg("chunks") = Array<uint8_t>(0));
  py::class_<OwnPlaces>(m, "OwnPlaces")
      .def(py::init<uint64_t, uint64_t>(), py::arg("capacity_pages"), py::arg("log_pages"))
      .def("hold", &OwnPlaces::hold, py::arg("first"), py::arg("pages"))
      .def(
          "take",
          [](OwnPlaces& places, const py::array& records) {
            return bytes_of(places.take(records_of(records)));
          },
          py::arg("records"))
      .def_property_readonly("waiting", &OwnPlaces::waiting);
  py::class_<PageTrace>(m, "PageTrace")
      .def(py::init([](const py::array& records) { return PageTrace(records_of(records)); }),
           py::arg("records"))
      .def_property_readonly("pages", &PageTrace::pages)
      .def_property_readonly("writes", &PageTrace::writes)
      .def_property_readonly("peak_live", &PageTrace::peak_live)
      .def("lifetimes", &lifetimes_of);
  py::class_<Shadow>(m, "Shadow")
      .def(py::init([](uint64_t live_pages, uint32_t candidates, uint32_t classes, double spare,
                       uint32_t block_pages, uint64_t sampled_pages, const std::string& gc_mode,
                       double begins, const std::string& victim) {
             return std::make_unique<Shadow>(Shadow::Settings{
                 live_pages, candidates, classes, spare, block_pages, sampled_pages,
                 or_throw(ssd::gc_mode_of(gc_mode)), or_throw(ssd::victim_of(victim)), begins});
           }),
           py::arg("live_pages"), py::arg("candidates"), py::arg("classes"),
           py::arg("spare") = 0.07, py::arg("block_pages") = 256,
           py::arg("sampled_pages") = 1U << 17, py::arg("gc_mode") = "same",
           py::arg("begins") = 1.0, py::arg("victim") = "greedy")
      .def(
          "feed",
          [](Shadow& shadow, const py::array& records, const Array<uint8_t>& page_tags) {
            shadow.feed(records_of(records), span_of(page_tags));
          },
          py::arg("records"), py::arg("tags"))
      .def("fill", &Shadow::fill, py::arg("pages"), py::arg("cls"), py::arg("first") = 0)
      .def("fork", &Shadow::fork, py::arg("serving"))
      .def("release", &Shadow::release, py::arg("candidate"), py::arg("cls"))
      .def_property_readonly("classes", &Shadow::classes)
      .def_property_readonly("written", &Shadow::written)
      .def_property_readonly("refused", &Shadow::refused)
      .def_property_readonly("one_in", &Shadow::one_in)
      .def_property_readonly("live_pages", &Shadow::live_pages)
      .def_property_readonly("copied", &Shadow::copied);
  bind_savings(m);
}

}  // namespace
}  // namespace streamfs::classifier

PYBIND11_MODULE(_core, m) {
  m.doc() = "What classifierd does for every record: rings, life table, tables of placements.";
  streamfs::classifier::bind_wire(m);
  streamfs::classifier::bind_seams(m);
  streamfs::classifier::bind_life_tables(m);
  streamfs::classifier::bind_predictor(m);
  streamfs::classifier::bind_chunks(m);
  streamfs::classifier::bind_replay(m);
}
