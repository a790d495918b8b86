/* Writes a log whose lines will be obsolete together.
 * cc libstream_label.c -lstream && ./a.out /tmp/mnt/orders.log */
#include <fcntl.h>
#include <libstream.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  static const char kLine[] = "an order\n";
  struct stream_vstream orders;
  struct stream_info info;
  int fd, result;
  if (argc != 2 || stream_open(&orders, "orders") != 0) return 64;
  fd = open(argv[1], O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (fd < 0) return 70;
  result = stream_tag_fd(fd, &orders); /* before the first write; may be ignored */
  if (result == STREAM_NOT_STREAMFS) puts("no streamfs here: written all the same");
  if (result < 0) printf("not labelled: %s\n", strerror(-result));
  if (write(fd, kLine, sizeof(kLine) - 1) < 0) return 70;
  if (stream_query_fd(fd, &info) == STREAM_HONOURED) printf("vStream %s\n", info.name);
  return close(fd) == 0 ? 0 : 70;
}
