// Actions of `custom-email-provider` in place of a provider. Credentials of a mail server are for a tenant that has bound
// none.
import type { MailProvider } from './mail-provider.ts';
import { smtp } from './smtp.ts';

export const custom: MailProvider = { ...smtp, name: 'custom', isByActions: true };
