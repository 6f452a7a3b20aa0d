// Messages of ours in any language, with sample values.
import type { MessageKind, Notice } from '../../src/capabilities/delivery/delivery-messages.ts';
import { createTemplates } from '../../src/capabilities/delivery/delivery-templates.ts';
import type { OutgoingEmail, OutgoingSms } from '../../src/capabilities/delivery/transport.ts';
import { createTenantLiquid, reportingLiquid } from '../../src/capabilities/liquid/liquid.ts';
import { type Locale, readLocales } from '../../src/capabilities/pages/locales.ts';
import type { Client, Connection } from '../../src/records/collections.ts';
import { type TenantRecord, tenantFileSchema } from '../../src/records/tenant/tenant.ts';
import { VIEWS } from '../http/site.ts';
import { LOCALES } from './messages.ts';

const LINK = 'https://login.example.test/u/reset-password?ticket=AbCdEfGhIjKlMnOp';

/** Our messages, each with what it carries. */
export const KINDS: Readonly<Record<MessageKind, Partial<Notice>>> = {
  verify_email: { url: LINK },
  reset_email: { url: LINK },
  welcome_email: { url: LINK },
  user_invitation: { url: LINK, inviter: { name: 'Ada Lovelace' } },
  administrator_invitation: { url: LINK, inviter: { name: 'Ada Lovelace' } },
  enrollment_email: { url: LINK },
  blocked_account: { url: LINK },
  mfa_oob_code: { code: '123456' },
  async_approval: { url: LINK },
  password_changed: {},
  method_added: { method: 'passkey' },
  method_removed: { method: 'totp' },
  account_changed: { change: 'email' },
  email_change_allow: { url: LINK, address: 'new@example.test' },
  email_change_prove: { url: LINK, address: 'new@example.test' },
  passwordless_email: { code: '123456' },
  passwordless_sms: { code: '123456' },
  mfa_sms: { code: '123456' },
};

/** Returns a function that renders our messages of a language. @param locales those of the files if none are given. */
export function sampleMessages(
  tag: string,
  locales: ReadonlyMap<string, Locale> = readLocales(LOCALES),
): (kind: MessageKind) => Promise<OutgoingEmail | OutgoingSms> {
  const tenant = tenantFileSchema.parse({
    tenant: { friendly_name: 'Example', enabled_locales: [tag] },
  }) as unknown as TenantRecord;
  const templates = createTemplates({
    directory: VIEWS,
    locales,
    baseUrl: 'https://login.example.test',
    settings: () => tenant,
    phoneTemplates: () => new Map(),
    mailFrom: () => 'Example <login@example.test>',
    liquid: reportingLiquid(createTenantLiquid(), () => {}),
  });
  return (kind) =>
    templates.render(kind, {
      to: kind.endsWith('sms') ? '+442079460000' : 'ada@example.test',
      application: { client_id: 'books', name: 'Harbour Books', callbacks: [] } as unknown as Client,
      connection: { name: 'email', strategy: 'email', options: {} } as unknown as Connection,
      ...KINDS[kind],
    });
}
