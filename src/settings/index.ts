// The process's settings, read once from the environment (docs/reference/settings.md): the groups that their owners
// declare, joined.
import { join } from 'node:path';
import { z } from 'zod';
import { deliverySettings } from '../capabilities/delivery/delivery-settings.ts';
import { signingSettings } from '../capabilities/signing/signing-settings.ts';
import { tlsSettings } from '../capabilities/tls/tls-settings.ts';
import { consoleSettings } from '../features/console/console-settings.ts';
import { logStreamSettings } from '../features/management/log-streams/log-streams-settings.ts';
import { metricsSettings } from '../features/metrics/metrics-settings.ts';
import { LOOPBACK_RANGES } from '../http/outbound/outbound.ts';
import { outboundSettings } from '../http/outbound/outbound-settings.ts';
import { present } from '../runtime/settings-group.ts';
import { databaseSettings, storeSettings } from '../store/store-settings.ts';
import { tenantSettings } from '../tenant/tenant-file-settings.ts';
import { addressSettings, isForThisMachine, processSettings, workerSettings } from './server.ts';

/** The groups, in the order of the documents. */
const GROUPS = [
  addressSettings,
  tenantSettings,
  storeSettings,
  tlsSettings,
  outboundSettings,
  signingSettings,
  databaseSettings,
  workerSettings,
  deliverySettings,
  metricsSettings,
  consoleSettings,
  logStreamSettings,
  processSettings,
] as const;

type Group = (typeof GROUPS)[number];
type All<Union> = (Union extends unknown ? (one: Union) => void : never) extends (all: infer Each) => void
  ? Each
  : never;
type VariablesOf<G> = G extends { variables: infer V extends z.ZodRawShape }
  ? z.output<z.ZodObject<V>>
  : never;

export type Settings = All<ReturnType<Group['settings']>>;
type Environment = All<VariablesOf<Group>>;

const variables: z.ZodRawShape = Object.assign({}, ...GROUPS.map((group) => group.variables));

/** The variables that are, or may contain, a secret. No other program gets them. */
export const SECRET_SETTINGS: readonly string[] = Object.entries(variables)
  .filter(([, schema]) => metaOf(schema).isSecret === true)
  .map(([name]) => name);

/** Returns the variables, each with its default and its meaning, for the documents. */
export function describedSettings(): { name: string; fallback: string; meaning: string }[] {
  return Object.entries(variables).map(([name, schema]) => {
    const { description = '', fallback } = metaOf(schema);
    const defaultText = schema instanceof z.ZodDefault ? `\`${schema.parse(undefined)}\`` : 'none';
    return { name, fallback: typeof fallback === 'string' ? fallback : defaultText, meaning: description };
  });
}

function metaOf(schema: z.core.$ZodType) {
  return z.globalRegistry.get(schema) ?? {};
}

/** The error for invalid settings, with one sentence for each fault. */
export class SettingsFault {
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    this.faults = faults;
  }
}

/**
 * @param env the environment; an empty variable counts as not set.
 * @throws SettingsFault naming every fault.
 */
export function readSettings(env: Readonly<Record<string, string | undefined>>): Settings {
  const set = Object.fromEntries(
    Object.entries(env).filter(([, value]) => value !== undefined && value !== ''),
  );
  const schema = z.object(variables);
  const { error, data } = schema.safeParse(set);
  const issues = error?.issues ?? [];
  const faulty = new Set(issues.map(({ path }) => path[0]));
  const others = Object.fromEntries(Object.entries(set).filter(([name]) => !faulty.has(name)));
  // What the groups declare, by the types above: the compiler does not follow the joined object.
  const valid = (data ?? schema.parse(others)) as Environment;
  const faults = [
    ...issues.map(({ path, message }) => `${path.join('.')}: ${message}`),
    // What misses a variable that is faulty is said already.
    ...GROUPS.flatMap((group) => group.faults(valid, valid)).filter(
      (fault) => !faulty.has(fault.split(':', 1)[0]),
    ),
  ];
  if (faults.length > 0) throw new SettingsFault(faults);
  return present(Object.assign({}, ...GROUPS.map((group) => group.settings(valid, valid))) as Settings);
}

/** Returns the directory of the packages that scripts and actions may require. */
export function packagesDirectory({ dataDir }: Pick<Settings, 'dataDir'>): string {
  return join(dataDir, 'modules', 'node_modules');
}

/**
 * Returns the ranges and hosts that requests to addresses which users or applications name may reach beside the public
 * Internet.
 */
export function outboundAllow(settings: Settings): readonly string[] {
  return settings.outboundAllow ?? (isForThisMachine(settings) ? LOOPBACK_RANGES : []);
}

/**
 * Returns the same for addresses that anybody can name without logging in, as with metadata documents of applications: nothing
 * that the operator has opened is for strangers.
 */
export function strangersOutboundAllow(settings: Settings): readonly string[] {
  return isForThisMachine(settings) ? LOOPBACK_RANGES : [];
}
