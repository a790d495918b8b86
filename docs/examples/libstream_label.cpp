// Says how long files will be needed, by name, by bytes and by a general lifetime.
// c++ libstream_label.cpp -lstream && ./a.out /tmp/mnt
#include <cstdio>
#include <fstream>
#include <libstream.hpp>
#include <string>

int main(int argc, char** argv) {
  if (argc != 2) return 64;
  const std::string folder = argv[1];
  const auto write = [&](const char* name, auto&& label) {
    const std::string path = folder + "/" + name;
    std::ofstream file(path);
    const libstream::Outcome outcome = label(path);
    file << "data\n";
    stream_info info;
    const bool known = libstream::query(path, info).honoured();
    std::printf("%s: %s\n", name, known ? info.name : outcome.not_streamfs() ? "elsewhere" : "?");
  };
  write("scratch", [](auto& path) { return libstream::VStream::for_bytes(64 << 20).tag(path); });
  write("cache", [](auto& path) { return libstream::VStream::for_seconds(3600).tag(path); });
  write("archive", [](auto& path) { return libstream::hint(path, libstream::Life::kExtreme); });
  return 0;
}
