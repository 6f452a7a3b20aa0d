// The bodies that create and change connections, and their validation.
import { z } from 'zod';
import { AuthError } from '../../../../http/errors.ts';
import { MAX_SCRIPT_LENGTH } from '../../../../records/base/script-length.ts';
import type { Connection, Records } from '../../../../records/collections.ts';
import {
  connectionSchema,
  DATABASE,
  databaseSchema,
  writtenDatabaseSchema,
} from '../../../../records/connections/connections.ts';
import { smsSecrets } from '../../../../records/connections/passwordless.ts';
import { wayInFault } from '../../../../records/database-options.ts';
import { withJsonLength } from '../../body-size.ts';
import { apiError } from '../../management-errors.ts';
import { metadataTexts } from '../../management-fields.ts';
import { checkedBy, merged } from '../../resource.ts';
import { isObject } from '../../section.ts';
import { refuseContradictions } from './database-attributes.ts';

const object = z.record(z.string(), z.unknown());

/** The most characters of options as JSON: the provider's metadata or a few scripts, each of which has a limit of its own. */
const MAX_OPTIONS_LENGTH = 8 * MAX_SCRIPT_LENGTH;

export const connectionMembers = {
  display_name: z.string().max(128).nullish(),
  options: withJsonLength(object, MAX_OPTIONS_LENGTH).nullish(),
  enabled_clients: z.array(z.string().max(255)).nullish(),
  is_domain_connection: z.boolean().nullish(),
  show_as_button: z.boolean().nullish(),
  realms: z.array(z.string().max(128)).nullish(),
  metadata: metadataTexts(10).nullish(),
  authentication: object.nullish(),
  connected_accounts: object.nullish(),
  cross_app_access_requesting_app: object.nullish(),
  cross_app_access_resource_app: object.nullish(),
};

export const createBody = z.strictObject({
  ...connectionMembers,
  name: z
    .string()
    .max(128)
    .regex(
      /^[a-zA-Z0-9](-[a-zA-Z0-9]|[a-zA-Z0-9])*$/,
      'String does not match pattern ^[a-zA-Z0-9](-[a-zA-Z0-9]|[a-zA-Z0-9])*$',
    ),
  strategy: z.string().min(1).max(64),
});

/** Members of the options that are kept if the new options leave them out: exported files do not contain them. */
const SECRETS = [
  'client_secret',
  'app_secret',
  'signing_key',
  'decryptionKey',
  ...smsSecrets.map((path) => path.split('.')[0] ?? path),
];

/** The same for databases, whose scripts' `configuration` is never returned. */
const DATABASE_SECRETS = [...SECRETS, 'configuration'];

/** Options that are kept as well, because users would lose their accounts: they say what users are known by. */
const IDENTIFIERS = ['map_user_id_to_id'];

/** Returns the new options without members that are null; secrets and identifiers that they leave out are kept. */
export function optionsOf(
  current: Pick<Connection, 'strategy' | 'options'> | undefined,
  options: Readonly<Record<string, unknown>>,
): object {
  const before = (current?.options ?? {}) as Record<string, unknown>;
  const secrets = current?.strategy === DATABASE ? DATABASE_SECRETS : SECRETS;
  const kept = [...secrets, ...IDENTIFIERS].filter(
    (name) => !(name in options) && before[name] !== undefined,
  );
  return {
    ...Object.fromEntries(kept.map((name) => [name, before[name]])),
    ...merged({}, options),
  };
}

export const refuseMetadata = (thrown: unknown): never => {
  throw thrown instanceof AuthError ? apiError(400, thrown.error_description, 'invalid_body') : thrown;
};

/**
 * @param isChanged whether its options are new; stored options are not refused for what newer rules demand.
 * @throws AuthError 400
 */
export function checked(record: Record<string, unknown>, isChanged = true): Records['connections'] {
  const database = isChanged ? writtenDatabaseSchema : databaseSchema;
  if (isChanged && record.strategy === DATABASE && isObject(record.options))
    refuseContradictions(record.options);
  const schema = record.strategy === DATABASE ? database : connectionSchema;
  const connection = checkedBy(schema as z.ZodType, record) as Records['connections'];
  const fault = isChanged && connection.strategy === DATABASE ? wayInFault(connection) : undefined;
  if (fault !== undefined) throw apiError(400, fault, 'invalid_body');
  return connection;
}

/** Returns a query parameter that may be repeated as an array. */
export const textsOf = (value: unknown): string[] =>
  (Array.isArray(value) ? value : value === undefined ? [] : [value]).map(String);
