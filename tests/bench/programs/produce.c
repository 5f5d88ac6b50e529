/* The least that a client of librdkafka does for records as the worker's Kafka sink sends them, without Python.

   produce LIBRARY BROKER TOPIC ROWS VALUE

   Produces ROWS messages with a key, seven headers and the value, as many at a time as fit into the queue, waits for the
   report of each, and prints CPU seconds per million: for handing over, for reports, and of librdkafka's threads. The
   first tenth does not count. The library is the one of the installed package, which brings no header file. */

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

enum { PRODUCER = 0, COPY = 2, EVENT_REPORT = 1, UNDER_WAY = 8000, AT_ONCE = 250, WAIT_MS = 100 };
enum { END = 0, RKT = 2, VALUE = 4, KEY = 5, MSGFLAGS = 7, HEADERS = 10 };

static const char *const settings[][2] = {
    {"enable.idempotence", "true"}, {"max.in.flight.requests.per.connection", "1"}, {"linger.ms", "0"},
    {"partitioner", "murmur2_random"}, {"compression.type", "lz4"}, {"queue.buffering.max.messages", "20000"}};
static const char *const same[][2] = {
    {"content-type", "application/json"}, {"ots-instance", "shop"}, {"ots-table", "orders"},
    {"ots-tunnel", "t"}, {"ots-channel-type", "Stream"}, {"ots-action", "PUT"}};

static double seconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void *library;

static void *function(const char *name) {
  void *found = dlsym(library, name);
  if (found == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  return found;
}

int main(int count, char **given) {
  if (count != 6 || (library = dlopen(given[1], RTLD_NOW)) == NULL) {
    fprintf(stderr, "%s\n", count != 6 ? "usage: produce LIBRARY BROKER TOPIC ROWS VALUE" : dlerror());
    return 1;
  }
  void *(*conf_new)(void) = function("rd_kafka_conf_new");
  int (*conf_set)(void *, const char *, const char *, char *, size_t) = function("rd_kafka_conf_set");
  void (*conf_set_events)(void *, int) = function("rd_kafka_conf_set_events");
  void *(*client_new)(int, void *, char *, size_t) = function("rd_kafka_new");
  void *(*main_queue)(void *) = function("rd_kafka_queue_get_main");
  void *(*topic_new)(void *, const char *, void *) = function("rd_kafka_topic_new");
  void *(*poll)(void *, int) = function("rd_kafka_queue_poll");
  int (*event_type)(void *) = function("rd_kafka_event_type");
  size_t (*event_count)(void *) = function("rd_kafka_event_message_count");
  void (*event_destroy)(void *) = function("rd_kafka_event_destroy");
  int (*produce)(void *, ...) = function("rd_kafka_producev");
  void *(*headers_new)(size_t) = function("rd_kafka_headers_new");
  void *(*headers_copy)(void *) = function("rd_kafka_headers_copy");
  int (*header_add)(void *, const char *, ssize_t, const void *, ssize_t) = function("rd_kafka_header_add");

  char error[512];
  void *conf = conf_new(), *headers = headers_new(8);
  int refused = conf_set(conf, "bootstrap.servers", given[2], error, sizeof error);
  for (size_t at = 0; at < sizeof settings / sizeof *settings; at++)
    refused |= conf_set(conf, settings[at][0], settings[at][1], error, sizeof error);
  for (size_t at = 0; at < sizeof same / sizeof *same; at++)
    header_add(headers, same[at][0], -1, same[at][1], -1);
  conf_set_events(conf, EVENT_REPORT);
  void *client = refused ? NULL : client_new(PRODUCER, conf, error, sizeof error);
  if (client == NULL) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }
  void *queue = main_queue(client), *topic = topic_new(client, given[3], NULL);

  long rows = atol(given[4]), warm = rows / 10, sent = 0, reported = 0;
  size_t size = strlen(given[5]);
  double handing = 0, reports = 0, begin = -1;
  while (reported < rows) {
    if (begin < 0 && reported >= warm) {
      begin = seconds(CLOCK_PROCESS_CPUTIME_ID);
      handing = reports = 0;
      warm = reported;
    }
    double before = seconds(CLOCK_THREAD_CPUTIME_ID);
    for (int at = 0; at < AT_ONCE && sent < rows && sent - reported < UNDER_WAY; at++, sent++) {
      char key[32], sequence[40];
      int key_size = snprintf(key, sizeof key, "[\"device-%08ld\",%ld]", sent, sent);
      int sequence_size = snprintf(sequence, sizeof sequence, "0.1700000000000000.%ld", sent);
      void *own = headers_copy(headers);
      header_add(own, "ots-sequence", -1, sequence, sequence_size);
      if (produce(client, RKT, topic, VALUE, given[5], size, KEY, key, (size_t)key_size, MSGFLAGS, COPY, HEADERS, own, END)) {
        fprintf(stderr, "a message is refused\n");
        return 1;
      }
    }
    double handed = seconds(CLOCK_THREAD_CPUTIME_ID);
    handing += handed - before;
    void *event = poll(queue, sent == rows || sent - reported == UNDER_WAY ? WAIT_MS : 0);
    if (event != NULL) {
      if (event_type(event) == EVENT_REPORT) reported += (long)event_count(event);
      event_destroy(event);
    }
    reports += seconds(CLOCK_THREAD_CPUTIME_ID) - handed;
  }
  double all = seconds(CLOCK_PROCESS_CPUTIME_ID) - begin, millions = (double)(rows - warm) / 1e6;
  printf("%.3f %.3f %.3f\n", handing / millions, reports / millions, (all - handing - reports) / millions);
  fflush(stdout);
  _Exit(0); /* the client would wait for its threads, which count no more */
}
