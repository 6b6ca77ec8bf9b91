"""From files to matrices, and back to files."""

from evgp.datasets._columns import plain as plain
from evgp.datasets.arrays import read_array as read_array
from evgp.datasets.encode import Encoder as Encoder
from evgp.datasets.files import atomic as atomic
from evgp.datasets.files import check_writable as check_writable
from evgp.datasets.files import write_rows as write_rows
from evgp.datasets.files import write_text as write_text
from evgp.datasets.files import written as written
from evgp.datasets.fitted import Fitted as Fitted
from evgp.datasets.fitted import Streamed as Streamed
from evgp.datasets.images import Images as Images
from evgp.datasets.images import read_images as read_images
from evgp.datasets.labelled import Labelled as Labelled
from evgp.datasets.labelled import ids as ids
from evgp.datasets.labelled import read_labelled as read_labelled
from evgp.datasets.pictures import ArrayPictures as ArrayPictures
from evgp.datasets.pictures import pictures_of as pictures_of
from evgp.datasets.samples import Samples as Samples
from evgp.datasets.samples import is_samples as is_samples
from evgp.datasets.samples import stack as stack
from evgp.datasets.streamed import open_pool as open_pool
from evgp.datasets.survey import Survey as Survey
from evgp.datasets.tables import Table as Table
from evgp.datasets.tables import read_table as read_table
