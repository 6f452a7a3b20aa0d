// The variables of the tenant's templates, named as in the hosted service.
import type { Frozen } from '../../records/record.ts';
import type { TenantRecord } from '../../records/tenant.ts';
import type { Notice } from './messages.ts';

/** Fields that users may read themselves: not `app_metadata`. */
const USER_FIELDS = [
  'email',
  'email_verified',
  'phone_number',
  'username',
  'name',
  'given_name',
  'family_name',
  'nickname',
  'picture',
  'user_metadata',
] as const;

/** Returns the variables of a message. */
export function variablesOf(
  { tenant }: Frozen<TenantRecord>,
  { to, application, connection, organization, inviter, user, url, code, method, languages }: Notice,
  { locale }: { locale: string },
): Record<string, unknown> {
  const callback = application?.callbacks[0];
  const known = Object.fromEntries(USER_FIELDS.map((field) => [field, user?.[field]]));
  return {
    application: {
      name: application?.name ?? tenant.friendly_name,
      clientID: application?.client_id,
      callback_domain: callback === undefined ? undefined : URL.parse(callback)?.origin,
    },
    connection: { name: connection?.name },
    organization:
      organization === undefined
        ? undefined
        : {
            id: organization.id,
            name: organization.name,
            display_name: organization.display_name ?? organization.name,
            metadata: organization.metadata,
          },
    inviter: inviter === undefined ? undefined : { name: inviter.name },
    // A new user has no record yet.
    user: {
      email: to.includes('@') ? to : undefined,
      phone_number: to,
      ...defined(known),
      user_id: user?.id,
    },
    url,
    link: url,
    code,
    password: code,
    otp: code,
    method,
    send: url === undefined ? 'code' : 'link',
    tenant: tenant.friendly_name,
    friendly_name: tenant.friendly_name,
    support_email: tenant.support_email,
    support_url: tenant.support_url,
    request_language: languages?.[0],
    locale,
  };
}

function defined(all: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}
