// The tenant file: read, its variables filled in, checked as a whole. What is wrong is said all at once;
// what we do not know is kept, and named.
import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import type { z } from 'zod';
import { crossFaults } from './cross-checks.ts';
import {
  brandingSchema,
  clientGrantSchema,
  clientSchema,
  connectionSchema,
  databaseSchema,
  developmentUserSchema,
  organizationSchema,
  resourceServerSchema,
  type TenantFile,
  tenantFileSchema,
  tenantSettingsSchema,
} from './schema.ts';

/** A tenant file that cannot be used: every fault, with its path. */
export class TenantFault {
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    this.faults = faults;
  }
}

export interface LoadedTenant {
  tenant: TenantFile;
  /** Keys that mean nothing here, one sentence each. */
  warnings: string[];
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Reads a tenant file. @throws TenantFault */
export async function loadTenantFile(path: string, env: Environment): Promise<LoadedTenant> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch {
    throw new TenantFault([`${path} cannot be read`]);
  }
  return parseTenant(text, env);
}

/** Reads a tenant from YAML. @throws TenantFault */
export function parseTenant(text: string, env: Environment): LoadedTenant {
  let document: unknown;
  try {
    document = parse(text);
  } catch (thrown) {
    throw new TenantFault([`not valid YAML: ${thrown instanceof Error ? thrown.message : String(thrown)}`]);
  }
  const faults: string[] = [];
  const filled = fillIn(document ?? {}, env, faults, '');
  if (faults.length > 0) throw new TenantFault(faults);
  return readTenant(filled);
}

/** Checks a tenant that is an object already. @throws TenantFault */
export function readTenant(document: unknown): LoadedTenant {
  const result = tenantFileSchema.safeParse(document);
  if (!result.success)
    throw new TenantFault(result.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`));
  const faults = crossFaults(result.data);
  if (faults.length > 0) throw new TenantFault(faults);
  return { tenant: result.data, warnings: unknownKeys(result.data) };
}

const VARIABLE = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}|##([A-Za-z_][A-Za-z0-9_]*)##/g;

/** `${NAME}` and `##NAME##` in any string become the variable's value. */
function fillIn(value: unknown, env: Environment, faults: string[], path: string): unknown {
  if (typeof value === 'string') {
    return value.replace(VARIABLE, (whole, braced?: string, hashed?: string) => {
      const name = braced ?? hashed ?? '';
      const found = env[name];
      if (found === undefined) faults.push(`${path}: the environment variable ${name} is not set`);
      return found ?? whole;
    });
  }
  if (Array.isArray(value)) return value.map((item, index) => fillIn(item, env, faults, `${path}[${index}]`));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      key,
      fillIn(item, env, faults, path === '' ? key : `${path}.${key}`),
    ]),
  );
}

const SECTIONS: [string, z.ZodObject][] = [
  ['clients', clientSchema],
  ['databases', databaseSchema],
  ['connections', connectionSchema],
  ['resourceServers', resourceServerSchema],
  ['clientGrants', clientGrantSchema],
  ['organizations', organizationSchema],
  ['users', developmentUserSchema],
];

function unknownKeys(file: TenantFile): string[] {
  const warnings = unknownIn(file, tenantFileSchema, '');
  warnings.push(...unknownIn(file.tenant, tenantSettingsSchema, 'tenant.'));
  warnings.push(...unknownIn(file.branding, brandingSchema, 'branding.'));
  for (const [section, schema] of SECTIONS) {
    const records = file[section] as Record<string, unknown>[];
    records.forEach((record, index) => {
      warnings.push(...unknownIn(record, schema, `${section}[${index}].`));
    });
  }
  return warnings;
}

function unknownIn(value: object, schema: z.ZodObject, prefix: string): string[] {
  return Object.keys(value)
    .filter((key) => !(key in schema.shape))
    .map((key) => `${prefix}${key} is not known here: it is kept, and has no effect`);
}
