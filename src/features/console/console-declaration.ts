// The limits of the console.
import { limitsOf } from '../../http/limits.ts';

export const consoleLimits = limitsOf({
  console: { capacity: 300, perMinute: 1200, per: 'address', where: '`/console`' },
  consoleMail: {
    capacity: 10,
    perMinute: 1,
    per: 'user',
    where: 'test e-mails that administrators send to themselves',
  },
  // An SMS costs money, and the administrator may enter any number.
  consoleSms: {
    capacity: 3,
    perMinute: 0.2,
    per: 'user',
    where: 'test SMS that an administrator sends to a number',
  },
});
