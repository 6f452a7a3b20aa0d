// Wakes the authenticator up: an empty push says that a login waits, the page says which.
self.addEventListener('push', (event) => {
  const title = new URL(self.location).searchParams.get('title') ?? 'Authenticator';
  event.waitUntil(self.registration.showNotification(title, { tag: 'login', requireInteraction: true }));
});

self.addEventListener('notificationclick', (event) => {
  event.notification.close();
  event.waitUntil(
    self.clients.matchAll({ type: 'window', includeUncontrolled: true }).then((open) => {
      const page = open.find(({ url }) => new URL(url).pathname === '/authenticator');
      return page ? page.focus() : self.clients.openWindow('/authenticator');
    }),
  );
});
