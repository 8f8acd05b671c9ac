/* A thread that another one cancels (pthread_cancel) is not cancelled while others use what is on its stack, or while it has
   a mutex, which would stay locked:

   before = deuteron_put_off_cancel();  ...  deuteron_put_back_cancel(before); */
#include <pthread.h>

__attribute__((unused)) static int deuteron_put_off_cancel(void) {
  int before = 0;
#ifdef PTHREAD_CANCEL_DISABLE /* Android has none */
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
#endif
  return before;
}

__attribute__((unused)) static void deuteron_put_back_cancel(int before) {
#ifdef PTHREAD_CANCEL_DISABLE
  pthread_setcancelstate(before, &before);
#else
  (void)before;
#endif
}
