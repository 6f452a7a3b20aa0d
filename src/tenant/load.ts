// The tenant file: read, its variables filled in, checked as a whole. What is wrong is said all at once;
// what we do not know is kept, and named.
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { parse } from 'yaml';
import { clientWarnings } from './client-warnings.ts';
import { crossFaults } from './cross-checks.ts';
import { readHtmlFiles } from './html-files.ts';
import { pageWarnings } from './pages.ts';
import { samlWarnings } from './saml-warnings.ts';
import { type TenantFile, tenantFileSchema } from './schema.ts';
import { unknownKeys } from './unknown-keys.ts';
import { fillIn } from './variables.ts';

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
  return parseTenant(text, env, dirname(path));
}

/**
 * Reads a tenant from YAML.
 * @param directory what the paths of files that it names are relative to; without it none is read.
 * @throws TenantFault
 */
export function parseTenant(text: string, env: Environment, directory?: string): LoadedTenant {
  let document: unknown;
  try {
    document = parse(text);
  } catch (thrown) {
    throw new TenantFault([`not valid YAML: ${thrown instanceof Error ? thrown.message : String(thrown)}`]);
  }
  const faults: string[] = [];
  const filled = fillIn(document ?? {}, env, faults);
  const whole = directory === undefined ? filled : readHtmlFiles(filled, directory, env, faults);
  if (faults.length > 0) throw new TenantFault(faults);
  return readTenant(whole);
}

/** Checks a tenant that is an object already. @throws TenantFault */
export function readTenant(document: unknown): LoadedTenant {
  const result = tenantFileSchema.safeParse(document);
  if (!result.success)
    throw new TenantFault(result.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`));
  const faults = crossFaults(result.data);
  if (faults.length > 0) throw new TenantFault(faults);
  return {
    tenant: result.data,
    warnings: [
      ...unknownKeys(result.data, tenantFileSchema),
      ...providerWarnings(result.data),
      ...samlWarnings(result.data),
      ...clientWarnings(result.data),
      ...pageWarnings(result.data),
    ],
  };
}

/** An exported tenant may name a provider that is not built in: it starts all the same. */
function providerWarnings({ emailProvider: provider }: TenantFile): string[] {
  if (provider?.enabled !== true || provider.name === 'smtp') return [];
  return [`emailProvider: ${provider.name} is not built in: set SMTP_URL to its SMTP endpoint`];
}
