// The example tenant file, and checks that its published secrets do not reach production.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { OutboundSettings } from '../http/outbound/outbound-settings.ts';
import { EXPOSED_SECRET } from '../records/clients/client-authentication.ts';
import { strategyRecord } from '../records/connections/connections.ts';
import { smsProviderOf } from '../records/connections/passwordless.ts';
import { tenantMail } from '../records/tenant/delivery.ts';
import type { DevelopmentUser, TenantFile } from '../records/tenant/tenant.ts';
import type { Store } from '../store/contract.ts';
import { listAll } from '../store/list-all.ts';
import { loadTenantFile } from './load.ts';
import { directoryOf } from './names.ts';
import { closedAddresses } from './provider-addresses.ts';

/** The example, which a start without a tenant file uses. */
export const EXAMPLE_FILE = new URL('../../config/tenant.yaml', import.meta.url);

/** Returns whether to start from the example: in development, without a tenant file, and without `TENANT_FILE`. */
export function isFirstStart(
  { tenantFile, production }: { tenantFile: string; production: boolean },
  env: Readonly<Record<string, string | undefined>>,
): boolean {
  return !existsSync(tenantFile) && !production && !env.TENANT_FILE;
}

/** The secrets of the example tenant, and those of the folders in `examples`. */
const isExampleSecret = (secret: string | undefined) => /^example-|-example-secret$/.test(secret ?? '');

/** Whether the process settings configure mail and SMS. */
interface Delivery extends Pick<OutboundSettings, 'outboundAllow'> {
  mail?: object | undefined;
  sms?: object | undefined;
}

interface ExampleUsers {
  findInConnection(connection: { name: string }, identifier: string): Promise<{ id: string } | undefined>;
  verifyPassword(userId: string | undefined, password: string): Promise<number | undefined>;
}

/** Returns a fault for each application whose secret is too short for production. */
function shortSecrets(
  clients: readonly { client_id: string; client_secret?: string | undefined }[],
): string[] {
  return clients
    .filter(
      ({ client_secret: secret }) =>
        !isExampleSecret(secret) && (secret?.length ?? Infinity) < EXPOSED_SECRET,
    )
    .map(({ client_id: id }) => `${id} has a client_secret of fewer than ${EXPOSED_SECRET} characters`);
}

/** Returns why a tenant file cannot be used in production; empty when it can. */
export function productionFaults(file: TenantFile, { mail, sms, outboundAllow = [] }: Delivery): string[] {
  const faults = file.clients.flatMap((client, index) => {
    const isExample = isExampleSecret(client.client_secret);
    const wrong = isExample ? [`${client.client_id} has the example's secret`] : shortSecrets([client]);
    return wrong.map((one) => `clients[${index}].client_secret: ${one}`);
  });
  if (file.users.length > 0) faults.push('users: development users are for development only');
  if (mail === undefined && tenantMail(file.emailProvider) === undefined) {
    faults.push('SMTP_URL: required in production, or emailProvider with credentials.smtp_host');
  }
  const smsConnections = file.connections.filter(
    ({ strategy, enabled_clients: clients, options }) =>
      strategyRecord(strategy)?.proves === 'phone_number' &&
      clients.length > 0 &&
      smsProviderOf(options) === undefined,
  );
  if (sms === undefined && smsConnections.length > 0) {
    const names = smsConnections.map(({ name }) => name).join(', ');
    faults.push(`TWILIO_ACCOUNT_SID: required in production for the connection ${names}`);
  }
  faults.push(...closedAddresses(file, outboundAllow));
  return faults;
}

/**
 * Returns what is left of the example in a store, with what to do. A start changes no existing record, so editing
 * the tenant file is not enough.
 */
export async function exampleRemains(store: Store, users: ExampleUsers): Promise<string[]> {
  const clients = await listAll(store.collection('clients'));
  const remains = [
    ...clients
      .filter((client) => isExampleSecret(client.client_secret))
      .map(({ id }) => `${id} has the example's secret`),
    ...shortSecrets(clients),
  ].map((one) => `${one}: set another in the tenant file and run gatehouse apply`);
  const user = await exampleUser(users);
  if (user !== undefined) {
    remains.push(`${user.email} has the example's password: use a DATA_DIR that never served development`);
  }
  return remains;
}

/** Returns the example's user if its published password still works. */
export async function exampleUser(users: ExampleUsers): Promise<DevelopmentUser | undefined> {
  const { tenant } = await loadTenantFile(fileURLToPath(EXAMPLE_FILE), {});
  for (const user of tenant.users) {
    const connection = { name: directoryOf(tenant, user) };
    // Looked up first, so that no password is hashed when the user does not exist.
    const found = await users.findInConnection(connection, user.email);
    if (found !== undefined && (await users.verifyPassword(found.id, user.password)) !== undefined)
      return user;
  }
  return undefined;
}
