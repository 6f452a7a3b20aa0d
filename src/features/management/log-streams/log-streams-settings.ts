// Whether log streams may write files.
import { z } from 'zod';
import { settingsGroup } from '../../../runtime/settings-group.ts';

export const logStreamSettings = settingsGroup({
  variables: {
    LOG_STREAM_FILES: z.enum(['on', 'off']).default('off').meta({
      description: '`on`: log streams of the type `file` are written to `$DATA_DIR/log-streams`',
    }),
  },
  settings: (own) => ({ logStreamFiles: own.LOG_STREAM_FILES === 'on' }),
});
