// Where the tenant file is.
import { z } from 'zod';
import { settingsGroup } from '../runtime/settings-group.ts';

/** Path of the tenant file where TENANT_FILE is not set. */
export const TENANT_FILE = 'config/tenant.yaml';

export const tenantSettings = settingsGroup({
  variables: {
    TENANT_FILE: z.string().min(1).default(TENANT_FILE).meta({ description: 'path of the tenant file' }),
  },
  settings: ({ TENANT_FILE: tenantFile }) => ({ tenantFile }),
});
