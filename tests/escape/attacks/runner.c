// Never the same process for long: each forks the next and ends, faster than anybody can read /proc and send a signal.
// Arguments: how many run at once, and what else: `reap` orphans so that none of them comes back
// to the leader; `thread`: end the first thread of each, which then looks dead, and go on in another.
#include "attack.h"
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

static void *sleeps(void *nothing) {
    for (;;) sleep(1000);
}

int main(int argc, char **argv) {
    int runners = argc > 1 ? atoi(argv[1]) : 1;
    const char *how = argc > 2 ? argv[2] : "";
    for (int number = 1; number < 65; number++) signal(number, SIG_IGN);
    signal(SIGCHLD, SIG_IGN);
    prctl(PR_SET_NAME, "runner");
    for (int i = 1; i < runners; i++)
        if (fork() == 0) break;
    setsid();
    if (!strcmp(how, "thread")) {
        pthread_t thread;
        pthread_create(&thread, 0, sleeps, 0);
        if (fork() == 0) pthread_create(&thread, 0, sleeps, 0);
        pthread_exit(0);
    }
    if (!strcmp(how, "reap")) prctl(PR_SET_CHILD_SUBREAPER, 1);
    for (;;) {
        pid_t next = fork();
        if (next > 0) {
            // One that reaps stays and has many children, who change all the time.
            if (!strcmp(how, "reap") && getpid() % 5) continue;
            _exit(0);
        }
        if (next < 0) usleep(50);
    }
}
