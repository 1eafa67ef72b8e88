//go:build linux && cgo

package veto

// The constructor below runs before the Go runtime starts. Until then nothing in Go
// can choose the exit code, and the runtime exits with 2 if it cannot get memory or a
// thread. Only the hook is concerned; all other commands start as ever. It costs a
// handful of system calls, a few microseconds.
//
// Only glibc passes the arguments to a constructor; with another C library the hook
// is protected from main on.

/*
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __GLIBC__

#include <malloc.h>

// The address space that the Go runtime and its first threads reserve before main.
#define NEEDED (1300UL << 20)

static char abort_on_failure[] = "GOTRACEBACK=crash";

// Entries of the environment that the hook does not read. The first of them makes way
// for GOTRACEBACK, because the list has no free place.
static const char *const unused[] = {
	"GOTRACEBACK=", "_=", "OLDPWD=", "SHLVL=", "TERM=", "COLORTERM=", "LS_COLORS=", "SHELL=", "LOGNAME=", "MAIL=", "PWD=",
};

static void fail(int signal) { _exit(1); }

// The runtime's SIGABRT ends in this handler, and so does abort() of the C library.
static void catch_abort(void) {
	struct sigaction action = { .sa_handler = fail, .sa_flags = SA_ONSTACK };
	sigaction(SIGABRT, &action, NULL);
}

static int calls_hook(int argc, char **argv) {
	if (argc < 1)
		return 0;
	const char *name = strrchr(argv[0], '/');
	if (strncmp(name ? name + 1 : argv[0], "cairn-hook", 10) == 0)
		return 1;
	for (int i = 1; i < argc && i <= 4; i++)
		if (strcmp(argv[i], "record") == 0)
			return 1;
	return 0;
}

__attribute__((constructor)) static void prevent_veto(int argc, char **argv, char **envp) {
	if (!calls_hook(argc, argv))
		return;
	catch_abort();
	// One thread works at a time. An arena for each would reserve 64 MiB more.
	mallopt(M_ARENA_MAX, 1);
	for (size_t u = 0; u < sizeof unused / sizeof *unused; u++) {
		char **e = envp;
		while (*e && strncmp(*e, unused[u], strlen(unused[u])))
			e++;
		if (*e) {
			*e = abort_on_failure;
			break;
		}
	}
	// The first reservations come before the runtime reads its environment.
	void *room = mmap(NULL, NEEDED, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (room == MAP_FAILED) {
		static const char why[] = "cairn: record: too little address space is allowed (raise ulimit -v to 2 GB or more)\n";
		ssize_t ignored = write(2, why, sizeof why - 1);
		(void)ignored;
		_exit(1);
	}
	munmap(room, NEEDED);
}

#else

static void catch_abort(void) {}

#endif
*/
import "C"

// catchAbort makes SIGABRT end the hook with exit code 1. The runtime has put its own
// handler over the constructor's, which would first ask every thread for its stack
// and so take seconds.
func catchAbort() { C.catch_abort() }
