// The mail server of a tenant.
import { z } from 'zod';
import { isLoopbackAddress } from '../../http/addresses.ts';
import { hidden, open } from '../base/members.ts';
import { mailProvider } from './mail-provider.ts';

export const smtp = mailProvider({
  name: 'smtp',
  credentials: {
    smtp_host: open(
      z
        .string()
        .regex(/^[A-Za-z0-9._:-]+$/, 'must be a host name or an address, without smtp:// and port')
        .optional(),
    ),
    smtp_port: open(z.number().int().min(1).max(65_535).default(587)),
    smtp_user: open(z.string().optional()),
    smtp_pass: hidden(z.string().optional()),
  },
  sentTo: 'smtp_host',
  open: ({ smtp_host: host, smtp_port: port, smtp_user: user, smtp_pass: password = '' }) => {
    if (host === undefined) return undefined;
    const server = {
      host,
      port,
      secure: port === 465,
      allowPlain: isThisMachine(host),
      ...(user !== undefined && { user, password }),
    };
    return { address: undefined, transport: (needs) => needs.smtp(server) };
  },
});

/** Names below `localhost` do not count: some resolvers look them up elsewhere. */
export const isThisMachine = (host: string): boolean => host === 'localhost' || isLoopbackAddress(host);
