// The Python face of _lab; its types are in src/streamfs_lab/_lab.pyi. Records and results cross as
// numpy arrays, so the module registers no class of classifierd._core.
// Exceptions stop here: std::invalid_argument becomes Python's ValueError.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/wire/record_arrays.h"
#include "lab/python/src_core/generated.h"
#include "lab/python/src_core/record_source.h"
#include "lab/python/src_core/simulator.h"
#include "lab/python/src_core/views.h"
#include "learning/logistic.h"
#include "learning/tokens.h"

namespace py = pybind11;

namespace streamfs::lab::python {
namespace {

using wire::Array;
using wire::bytes_of;
using wire::records_of;
using wire::span_of;

// Parses releases, u64[n, 2]: the number of a page write, and a stream.
std::vector<Release> releases_of(const Array<uint64_t>& rows) {
  if (rows.size() % 2 != 0)
    throw std::invalid_argument("releases: each row must be a page write and a stream");
  std::vector<Release> out;
  for (const uint64_t* row = rows.data(); row != rows.data() + rows.size(); row += 2) {
    if (row[1] > UINT8_MAX)
      throw std::invalid_argument("releases: a stream number is out of range");
    out.push_back({row[0], static_cast<uint8_t>(row[1])});
  }
  return out;
}

// Returns a row of VIEW_FIELDS for each page written.
py::array_t<float> feed_views(Views& views, const py::array& records) {
  const std::vector<ViewRow> rows = views.feed(records_of(records));
  py::array_t<float> out({rows.size(), kViewFields.size()});
  std::memcpy(out.mutable_data(), rows.data(), rows.size() * sizeof(ViewRow));
  return out;
}

using Tokens = learning::Tokens<learning::kHistoryTokens>;
using Logistic = learning::Logistic<learning::kHistoryTokens>;

// Parses a row of tokens for each write. Throws std::invalid_argument for rows of another width and
// for a token that is too large.
std::vector<Tokens> tokens_in(const Array<uint32_t>& tokens) {
  if (tokens.ndim() != 2 || tokens.shape(1) != learning::kHistoryTokens) {
    throw std::invalid_argument("a row of TOKENS tokens for each write is needed");
  }
  const std::span<const uint32_t> flat(tokens.data(), static_cast<size_t>(tokens.size()));
  if (std::ranges::any_of(flat, [](uint32_t token) { return token >= learning::kTokenValues; })) {
    throw std::invalid_argument("a number is no token: it is too large");
  }
  std::vector<Tokens> out(flat.size() / learning::kHistoryTokens);
  for (size_t i = 0; i < flat.size(); ++i) {
    out[i / learning::kHistoryTokens][i % learning::kHistoryTokens] =
        static_cast<learning::Token>(flat[i]);
  }
  return out;
}

void train_logistic(Logistic& model, uint32_t landmark, const Array<uint32_t>& tokens,
                    const Array<uint8_t>& lived) {
  const auto writes = tokens_in(tokens);
  const auto labels = span_of(lived);
  if (landmark >= learning::kLandmarks || labels.size() != writes.size()) {
    throw std::invalid_argument("a landmark that exists, and a label for each write, are needed");
  }
  for (size_t i = 0; i < writes.size(); ++i) model.train(landmark, writes[i], labels[i] != 0);
}

py::array_t<float> score_logistic(const Logistic& model, const Array<uint32_t>& tokens) {
  const auto writes = tokens_in(tokens);
  py::array_t<float> out({writes.size(), size_t{learning::kLandmarks}});
  for (size_t i = 0; i < writes.size(); ++i) {
    const learning::Scores scores = model.score(writes[i]);
    std::ranges::copy(scores, out.mutable_data(static_cast<py::ssize_t>(i), 0));
  }
  return out;
}

void bind_learning(py::module_& m) {
  m.attr("VIEW_FIELDS") = py::tuple(py::cast(kViewFields));
  py::class_<Views>(m, "Views")
      .def(py::init<uint64_t, uint64_t>(), py::arg("device_pages"), py::arg("live_pages"))
      .def("feed", &feed_views, py::arg("records"));
  m.attr("TOKENS") = learning::kHistoryTokens;
  m.attr("TOKEN_VALUES") = learning::kTokenValues;
  py::class_<Logistic>(m, "Logistic")
      .def(py::init<>())
      .def("train", &train_logistic, py::arg("landmark"), py::arg("tokens"), py::arg("lived"))
      .def("score", &score_logistic, py::arg("tokens"));
}

void bind_simulator(py::module_& m) {
  py::register_local_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const NoRoom& error) {
      const py::object reason = py::make_tuple(ENOSPC, error.what());
      PyErr_SetObject(PyExc_OSError, reason.ptr());
    }
  });
  m.def(
      "waf",
      [](const py::array& records, const std::string& placement, uint32_t streams,
         const Array<uint8_t>& page_tags, double spare, uint32_t block_pages, double warmup,
         const std::string& victim, const std::string& gc_mode, const Array<uint64_t>& releases) {
        const auto span = records_of(records);
        const std::vector<Release> released = releases_of(releases);
        const py::gil_scoped_release release;
        return waf_of(span, placement, streams, span_of(page_tags),
                      {spare, block_pages, warmup, victim, gc_mode}, released);
      },
      py::arg("records"), py::arg("placement"), py::arg("streams") = 0,
      py::arg("tags") = Array<uint8_t>(0), py::arg("spare") = 0.07, py::arg("block_pages") = 256,
      py::arg("warmup") = 0.3, py::arg("victim") = "greedy", py::arg("gc_mode") = "same",
      py::arg("releases") = Array<uint64_t>(0));
  m.def("generator_names", &generator_names);
  m.def(
      "generated",
      [](const std::string& name, uint32_t pages, uint64_t writes, uint64_t seed) {
        const Generated made = [&] {
          const py::gil_scoped_release release;
          return generated(name, pages, writes, seed);
        }();
        return py::make_tuple(bytes_of(made.records), made.starts_full);
      },
      py::arg("name"), py::arg("pages"), py::arg("writes"), py::arg("seed") = 1);
}

}  // namespace
}  // namespace streamfs::lab::python

PYBIND11_MODULE(_lab, m) {
  m.doc() = "Replays records in the simulator, and shows what learning sees of a write.";
  streamfs::lab::python::bind_learning(m);
  streamfs::lab::python::bind_simulator(m);
}
