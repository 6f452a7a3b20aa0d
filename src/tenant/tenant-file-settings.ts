// Where the tenant file is.
import { z } from 'zod';
import { settingsGroup } from '../runtime/settings-group.ts';

/** Path of the tenant file where TENANT_FILE is not set. */
export const TENANT_FILE = 'config/tenant.yaml';

export interface TenantFileSettings {
  tenantFile: string;
  /** Whether changes of the tenant file are taken over while the server runs. */
  watchTenant: 'on' | 'off' | 'in-terminal';
}

export const tenantSettings = settingsGroup({
  variables: {
    TENANT_FILE: z
      .string()
      .min(1)
      .default(TENANT_FILE)
      .meta({ description: "path of the tenant file, or of a folder with the deploy tool's layout" }),
    TENANT_CONFIG: z.string().min(1).optional().meta({
      description:
        "path of the deploy tool's `config.json`, whose mappings and exclusions act on the tenant file, see [Change the tenant by its file](../do/tenant-file.md)",
    }),
    WATCH_TENANT: z.enum(['on', 'off']).optional().meta({
      description:
        '`on`: a development server takes changes of the tenant file over while it runs, see [Change the tenant by its file](../do/tenant-file.md)',
      fallback: '`on` in a terminal with `NODE_ENV=development`',
    }),
  },
  faults: ({ WATCH_TENANT }, { NODE_ENV }: { NODE_ENV: string }) =>
    WATCH_TENANT === 'on' && NODE_ENV === 'production'
      ? ['WATCH_TENANT: for development only; in production run gatehouse apply']
      : [],
  settings: (
    { TENANT_FILE: tenantFile, WATCH_TENANT },
    { NODE_ENV }: { NODE_ENV: string },
  ): TenantFileSettings => ({
    tenantFile,
    watchTenant: WATCH_TENANT ?? (NODE_ENV === 'development' ? 'in-terminal' : 'off'),
  }),
});
