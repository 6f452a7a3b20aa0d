// The example tenant file.
import { readFileSync } from 'node:fs';

export const EXAMPLE = readFileSync(new URL('../../config/tenant.yaml', import.meta.url), 'utf8');
