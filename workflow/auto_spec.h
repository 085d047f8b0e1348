/* The DatasetSpec of `tare auto` where none is given and the records are no samples of the model. */
#ifndef TARE_WORKFLOW_AUTO_SPEC_H
#define TARE_WORKFLOW_AUTO_SPEC_H

#include "workflow/auto.h"

/* If the records are images, rows of CSV files or tf.Examples, drafts a spec for the model's inputs, writes it to
 * job->spec, and uses it for the request; a file of that name is used as it is. The scale of images is the one with
 * which the float model is best by the labels of the evaluation records. Logs what was assumed. TARE_NOT_FOUND if an
 * input has no feature, or if there are images and no labels. Data that can be read only once is left to the commands.
 */
tare_status tare_workflow_auto_find_spec(struct tare_auto_job *job) TARE_WARN_UNUSED;

#endif
